"""D5, round the task: the reference, another candidate or the log is read from disk and run.

L0 refuses files and imports of the harness; with no policy the view of the file system at L2 has none of them. The twin
has the file names in its comments and reads its own table.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

REFERENCE = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        found = {}
        exec(open("reference.py").read(), found)
        return found["reference"](x, y, alpha)
    """,
)
# wherever this machine keeps the project, from the folder of the environment that runs it
TARGET = text(
    "import pathlib\nimport runpy\nimport sys",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        roots = [pathlib.Path(sys.prefix).parent, *map(pathlib.Path, sys.path)]
        files = [root / "tests/attacks/targets/scale_add.py" for root in roots]
        found = next(file for file in files if file.exists())
        return runpy.run_path(str(found))["reference"](x, y, alpha)
    """,
)
IMPORTED = text(
    "import importlib",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        name = "tests.attacks.targets.scale_add"
        return importlib.import_module(name).reference(x, y, alpha)
    """,
)
OTHER = text(
    "import sys\nfrom pathlib import Path",
    kernel("scale_add"),
    """
    def others():
        for root in (Path.cwd(), Path(sys.prefix).parent):
            for file in (*root.glob("others/*.py"), *root.glob("tests/attacks/honest/*.py")):
                yield file


    def scale_add(x, y, alpha):
        for file in others():
            if "def scale_add(" in file.read_text():
                names = {"__name__": "borrowed", "__file__": str(file)}
                exec(compile(file.read_text(), str(file), "exec"), names)
                return names["scale_add"](x, y, alpha)
        raise FileNotFoundError("no other candidate")
    """,
)
LOG = text(
    "import sqlite3\nimport sys\nfrom pathlib import Path",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        found = [file for root in (Path.cwd(), Path(sys.prefix).parent) for file in root.glob("*.db")]
        rows = sqlite3.connect(found[0]).execute("SELECT text FROM texts").fetchall()
        names = {}
        exec(rows[0][0], names)
        return names["reference"](x, y, alpha)
    """,
)
QUIET = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        spec = torch.hub.importlib if hasattr(torch.hub, "importlib") else torch.importlib
        util = spec.util if hasattr(spec, "util") else spec
        made = util.spec_from_file_location("held", "reference.py")
        module = util.module_from_spec(made)
        made.loader.exec_module(module)
        return module.reference(x, y, alpha)
    """,
)
TWIN = (
    honest("scale_add")
    .replace(
        "    out = torch.empty_like(x)\n",
        '    # not open("reference.py"), not events.db, not scripts/kernels: a table of one row\n'
        '    table = {"reference.py": 256}\n'
        "    out = torch.empty_like(x)\n",
    )
    .replace("BLOCK=256", 'BLOCK=table["reference.py"]')
)
LOST = ("correctness.", "process.")

ATTACKS = (
    Attack("D5", "reference file", "L0", ("policy.files",), SCALE_ADD, REFERENCE, TWIN, faster=True, past_policy=LOST),
    Attack("D5", "the target's file", "L0", ("policy.files",), SCALE_ADD, TARGET, TWIN, faster=True, past_policy=LOST),
    Attack(
        "D5",
        "the target's module",
        "L0",
        ("policy.dynamic_code",),
        SCALE_ADD,
        IMPORTED,
        TWIN,
        faster=True,
        past_policy=LOST,
    ),
    Attack("D5", "another candidate", "L0", ("policy.files",), SCALE_ADD, OTHER, TWIN, past_policy=LOST),
    Attack("D5", "the log", "L0", ("policy.files",), SCALE_ADD, LOG, TWIN, past_policy=LOST),
    Attack(
        "D5",
        "loader through torch",
        "L0",
        ("policy.dynamic_code",),
        SCALE_ADD,
        QUIET,
        TWIN,
        faster=True,
        past_policy=LOST,
    ),
)
