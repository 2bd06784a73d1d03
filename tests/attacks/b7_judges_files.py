"""B7, the judge: tolerance, reference or a module of the judge's folder is written, or a `torch.py` is left there.

L0 refuses files; with no policy the working folder of L2 is empty, nothing else can be written, and the parent reads
nothing from it. The twin keeps its tolerance and its reference in names of its own.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

NOTHING = """
def scale_add(x, y, alpha):
    return (torch.zeros_like(x),)
"""
TORCH = text(
    "import os",
    kernel("scale_add"),
    '''
    PLANTED = """
    import os

    print('{"correct": true, "milliseconds": 0.001}', flush=True)
    os._exit(0)
    """


    def scale_add(x, y, alpha):
        with open("torch.py", "w") as file:
            file.write("\\n".join(line.strip() for line in PLANTED.splitlines()))
        return (torch.zeros_like(x),)
    ''',
)
TOLERANCE = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        with open("tolerance.json", "w") as file:
            file.write("1e9")
        return (torch.zeros_like(x),)
    """,
)
REFERENCE = text(
    "from pathlib import Path",
    kernel("scale_add"),
    """
    for place in (Path.cwd(), *Path(__file__).resolve().parents):
        for file in place.glob("reference.py"):
            file.write_text("def reference(x, y, alpha):\\n    return (x * 0,)\\n")
    """,
    NOTHING,
)
# finds the target's own file wherever the package lies, and no `open` or `pathlib` in sight; the comment it leaves is
# what a rewritten reference would be, without harm to this corpus
PACKAGE = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        torch.save({"rtol": 1e9}, "tolerance.pt")
        torch.hub.os.replace("tolerance.pt", "kept.pt")
        torch.hub.Path("tolerance.json").write_text("1e9")
        return (torch.zeros_like(x),)
    """,
)
TWIN = (
    honest("scale_add")
    .replace(
        "    out = torch.empty_like(x)\n",
        '    # open("tolerance.json", "w") and Path("reference.py").write_text(...) have no place here\n'
        '    tolerance = {"rtol": 1e-6, "block": 256}\n'
        "    out = torch.empty_like(x)\n",
    )
    .replace("BLOCK=256", 'BLOCK=tolerance["block"]')
)
LATE = Naive(reference_first=False, rereads=True)
WRONG = ("correctness.", "process.")

ATTACKS = (
    Attack(
        "B7", "torch.py left", "L0", ("policy.files",), SCALE_ADD, TORCH, TWIN, naive=Naive(runs=2), past_policy=WRONG
    ),
    Attack("B7", "tolerance written", "L0", ("policy.files",), SCALE_ADD, TOLERANCE, TWIN, past_policy=WRONG),
    Attack(
        "B7", "reference written", "L0", ("policy.files",), SCALE_ADD, REFERENCE, TWIN, naive=LATE, past_policy=WRONG
    ),
    Attack("B7", "written through torch", "L0", ("policy.files",), SCALE_ADD, PACKAGE, TWIN, past_policy=WRONG),
)
