"""The rows target with a reference that takes longer than a candidate may."""

import time
from pathlib import Path

from kernelgen.targets.code import load_code

_rows = load_code("rows_target.py", Path(__file__).parent)
make_inputs, compare, flops, bytes_moved = _rows.make_inputs, _rows.compare, _rows.flops, _rows.bytes_moved
REFERENCE_S = 0.15


def reference(x, w, factor):
    time.sleep(REFERENCE_S)
    return _rows.reference(x, w, factor)
