"""The environment variables that candidate code sees: what compilers and GPUs are found by, and no secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping

# names, and beginnings of names
KEPT = frozenset({"PATH", "LANG", "LC_ALL", "TZ", "CC", "CXX", "LD_LIBRARY_PATH"})
KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "OMP_", "MKL_", "OPENBLAS_")
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
# few threads: a pool that is started before a fork does not survive it
DEFAULTS = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/local/bin:/usr/bin:/bin"}
NOBODY = "user"


def scrubbed(variables: Mapping[str, str]) -> dict[str, str]:
    """What is kept of an environment, with the defaults."""
    kept = {
        name: value
        for name, value in variables.items()
        if (name in KEPT or name.startswith(KEPT_PREFIXES)) and not SECRET.search(name)
    }
    return {**DEFAULTS, **kept}


def of_folder(folder: str) -> dict[str, str]:
    """Variables that point everything that wants to write into a folder."""
    return {
        "HOME": folder,
        "TMPDIR": folder,
        "USER": NOBODY,
        "LOGNAME": NOBODY,
        "TRITON_HOME": folder,
        "TRITON_CACHE_DIR": f"{folder}/cache",
        "XDG_CACHE_HOME": f"{folder}/cache",
        "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache",
        "TILELANG_CACHE_DIR": f"{folder}/cache",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
