"""`python -m kernelgen.ladder.containment`: what holds on this machine, as JSON."""

from __future__ import annotations

import json
import sys

from kernelgen.ladder.containment import probe

if __name__ == "__main__":
    json.dump(probe.tried(), sys.stdout, indent=2)
    sys.stdout.write("\n")
