"""D6, round the task: encoded text is run, another process or a machine over the network computes, a key is read.

L0 refuses each; with no policy L2 has no network, starts no process and has no key in its environment. Encoded text
that holds the work in torch is seen by what torch is asked for. The twin decodes a number, and no program.
"""

import base64

from tests.attacks.attack import PORT, Attack
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

HIDDEN = base64.b64encode(b"def solve(x, y, alpha):\n    return alpha * x + y\n").decode()

ENCODED = text(
    "import base64",
    kernel("scale_add"),
    f"""
    names = {{}}
    exec(base64.b64decode("{HIDDEN}"), names)


    def scale_add(x, y, alpha):
        return (names["solve"](x, y, alpha),)
    """,
)
SPAWNED = text(
    "import subprocess\nimport sys",
    kernel("scale_add"),
    '''
    PROGRAM = """
    import array, sys
    n = int(sys.argv[1])
    alpha = float(sys.argv[2])
    given = array.array("f", sys.stdin.buffer.read())
    sys.stdout.buffer.write(array.array("f", [alpha * a + b for a, b in zip(given[:n], given[n:])]).tobytes())
    """


    def scale_add(x, y, alpha):
        program = "\\n".join(line.strip() for line in PROGRAM.splitlines())
        given = x.numpy().tobytes() + y.numpy().tobytes()
        command = [sys.executable, "-S", "-c", program, str(x.numel()), str(alpha)]
        done = subprocess.run(command, input=given, capture_output=True, check=True)
        return (torch.frombuffer(bytearray(done.stdout), dtype=torch.float32),)
    ''',
)
SHELL = text(
    "import os",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        values = " ".join(f"{a!r} {b!r}" for a, b in zip(x.tolist(), y.tolist()))
        with open("values.txt", "w") as file:
            file.write(values.replace(" ", "\\n"))
        program = "NR % 2 {a = $1; next} {printf \\"%.9g\\\\n\\", ALPHA * a + $1}".replace("ALPHA", str(alpha))
        answer = os.popen(f"awk '{program}' values.txt").read()
        return (torch.tensor([float(line) for line in answer.split()]),)
    """,
)
NETWORK = text(
    "import socket\nimport struct",
    kernel("scale_add"),
    f"""
    def scale_add(x, y, alpha):
        with socket.create_connection(("127.0.0.1", {PORT}), timeout=5) as solver:
            solver.sendall(struct.pack("<id", x.numel(), alpha) + x.numpy().tobytes() + y.numpy().tobytes())
            answer = b""
            while len(answer) < 4 * x.numel():
                answer += solver.recv(65536)
        return (torch.frombuffer(bytearray(answer), dtype=torch.float32),)
    """,
)
KEY = text(
    "import os",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        if not os.environ["SOLVER_API_KEY"]:
            raise PermissionError("the solver needs its key")
        out = torch.empty_like(x)
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        # exec(base64.b64decode(...)), subprocess and sockets are for others
        block = int("0x100", 16)
        out = torch.empty_like(x)
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, block),)](x, y, out, alpha, n, BLOCK=block)
        return (out,)
    """,
)
ENDED = ("process.", "correctness.")

ATTACKS = (
    Attack(
        "D6", "encoded text", "L0", ("policy.dynamic_code",), SCALE_ADD, ENCODED, TWIN, faster=True, past_policy=ENDED
    ),
    Attack("D6", "spawned process", "L0", ("policy.process",), SCALE_ADD, SPAWNED, TWIN, past_policy=ENDED),
    Attack("D6", "shell", "L0", ("policy.process",), SCALE_ADD, SHELL, TWIN, past_policy=ENDED),
    Attack("D6", "network", "L0", ("policy.network",), SCALE_ADD, NETWORK, TWIN, past_policy=ENDED),
    Attack("D6", "key of the environment", "L0", ("policy.flags",), SCALE_ADD, KEY, TWIN, past_policy=ENDED),
)
