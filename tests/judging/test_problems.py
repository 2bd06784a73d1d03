"""Solutions to KernelBench-style problems: honest ones pass, whatever only looks like work is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from problem_files import HEAD, RELU_KERNEL, problem, solution, write  # noqa: E402

from kernelgen import cli  # noqa: E402
from kernelgen.door import compose  # noqa: E402
from kernelgen.errors import BadInput  # noqa: E402
from kernelgen.judging import problems  # noqa: E402
from kernelgen.judging.levels import Servers, Terms, climb  # noqa: E402
from kernelgen.ladder import cuda  # noqa: E402
from kernelgen.ladder.loader import kernels_alone  # noqa: E402
from kernelgen.ladder.results import Result  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples" / "problems"
Judge = Callable[..., list[Result]]

LINEAR = """
class Model(nn.Module):
    def __init__(self, columns, features):
        super().__init__()
        self.linear = nn.Linear(columns, features)

    def forward(self, x):
        return torch.relu(self.linear(x))
"""
MATMUL = """
class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)
"""
SOFTMAX = """
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
"""
RELU = """
class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
TOTAL = """
class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)
"""
COPY_KERNEL = """
@triton.jit
def copy_kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < size), mask=at < size)


def copied(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""


@pytest.fixture(scope="module")
def terms() -> Iterator[Terms]:
    policy = compose.compose([], ()).config.policy
    with Servers(contained=True) as servers:
        yield Terms(policy, (), servers, seed=11, device="cpu")


@pytest.fixture(scope="module")
def judge(terms: Terms) -> Judge:
    hardware = compose.compose([], ()).config.hardware

    def run(path: Path, reference: Path, upto: str = "L2") -> list[Result]:
        return climb(problems.solution(path, reference, hardware), upto, terms)

    return run


def checks(results: list[Result]) -> set[str]:
    return {fault.check for fault in results[-1].faults}


@pytest.mark.parametrize(("name", "kind"), [("matmul_bias_relu", "triton"), ("row_softmax", "triton")])
def test_the_examples_pass_every_level_that_a_cpu_can_tell(judge: Judge, name: str, kind: str) -> None:
    results = judge(EXAMPLES / f"{name}_{kind}.py", EXAMPLES / f"{name}.py")
    assert [(result.level, result.outcome, result.faults) for result in results] == [
        ("L0", "passed", ()),
        ("L1", "passed", ()),
        ("L2", "passed", ()),
    ]
    assert "logic check" in results[-1].reason
    assert any("the last 2 lines are the judge's" in note for note in results[0].notes)


def test_cuda_source_in_a_loader_is_read_and_its_kernels_compiled_and_nothing_more_is_claimed(judge: Judge) -> None:
    results = judge(EXAMPLES / "scale_add_cuda.py", EXAMPLES / "scale_add.py")
    assert [(result.level, result.outcome) for result in results] == [
        ("L0", "passed"),
        ("L1", "inconclusive"),
        ("L2", "inconclusive"),
    ]
    assert "built by torch's loader" in results[1].reason
    if cuda.find_nvcc() is not None:
        assert "1 of 1 kernels compile for sm_90a" in results[1].reason


def test_cuda_source_that_asks_torch_for_the_product_is_refused(judge: Judge, tmp_path: Path) -> None:
    reference = problem(tmp_path, MATMUL, "[torch.randn(16, 16), torch.randn(16, 16)]")
    text = """
    from torch.utils.cpp_extension import load_inline

    SOURCE = '''
    __global__ void idle_kernel(float* x) { x[0] = x[0]; }
    torch::Tensor product(torch::Tensor a, torch::Tensor b) {
      auto out = at::matmul(a, b);
      idle_kernel<<<1, 1>>>(out.data_ptr<float>());
      return out;
    }
    '''
    extension = load_inline(name="m", cpp_sources="", cuda_sources=SOURCE, functions=["product"])


    class ModelNew(nn.Module):
        def forward(self, a, b):
            return extension.product(a, b)
    """
    results = judge(solution(tmp_path, text), reference)
    assert results[-1].outcome == "failed"
    assert "policy.library_work" in checks(results)


HONEST = {
    "host code says cuda": (
        RELU,
        "[torch.rand(7, 300)]",
        RELU_KERNEL,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                assert x.is_cuda
                x = x.cuda().contiguous()
                out = torch.empty(x.shape, device="cuda", dtype=x.dtype)
                with torch.cuda.device(x.device):
                    relu_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
                return out
        """,
    ),
    "parameters of other names and forms, a Model carried along": (
        LINEAR,
        "[torch.randn(20, 32)]",
        """
        @triton.jit
        def kernel(x, weight, bias, out, features, columns: tl.constexpr, BLOCK: tl.constexpr):
            row, feature = tl.program_id(0), tl.arange(0, BLOCK)
            column = tl.arange(0, columns)
            left = tl.load(x + row * columns + column)
            right = tl.load(weight + column[:, None] * features + feature, mask=feature < features, other=0.0)
            total = tl.sum(left[:, None] * right, axis=0) + tl.load(bias + feature, mask=feature < features, other=0.0)
            tl.store(out + row * features + feature, tl.maximum(total, 0.0), mask=feature < features)
        """,
        LINEAR
        + """
class ModelNew(Model):
    def __init__(self, columns, features):
        super().__init__(columns, features)
        self.packed = nn.Parameter(self.linear.weight.detach().t().contiguous())
        self.offset = nn.Parameter(self.linear.bias.detach().clone())
        del self.linear

    def forward(self, x):
        out = x.new_empty((x.shape[0], self.packed.shape[1]))
        kernel[(x.shape[0],)](x, self.packed, self.offset, out, out.shape[1], columns=x.shape[1], BLOCK=32)
        return out
""",
    ),
    "the last step of a reduction by torch": (
        TOTAL,
        "[torch.rand(5, 4000)]",
        """
        @triton.jit
        def kernel(x, parts, columns, BLOCK: tl.constexpr):
            row, part = tl.program_id(0), tl.program_id(1)
            at = part * BLOCK + tl.arange(0, BLOCK)
            total = tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0), axis=0)
            tl.store(parts + row * tl.num_programs(1) + part, total)
        """,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                parts = torch.empty((x.shape[0], triton.cdiv(x.shape[1], 512)), dtype=x.dtype, device=x.device)
                kernel[parts.shape](x, parts, x.shape[1], BLOCK=512)
                return parts.sum(dim=1)
        """,
    ),
}


@pytest.mark.parametrize("what", HONEST)
def test_an_honest_solution_passes_though(judge: Judge, tmp_path: Path, what: str) -> None:
    model, inputs, kernels, text = HONEST[what]
    reference = problem(tmp_path, model, inputs, "[32, 24]" if "nn.Linear" in model else "[]")
    results = judge(solution(tmp_path, text, kernels=kernels), reference)
    assert [(result.level, result.outcome, result.faults) for result in results] == [
        ("L0", "passed", ()),
        ("L1", "passed", ()),
        ("L2", "passed", ()),
    ]


PRODUCT_BY_TORCH = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        {}
"""
CHEATS = {
    "torch.matmul beside a decoy": (
        MATMUL,
        PRODUCT_BY_TORCH.format("return copied(torch.matmul(a, b))"),
        "policy.library_work",
    ),
    "an operator beside a decoy": (MATMUL, PRODUCT_BY_TORCH.format("return copied(a @ b)"), "policy.library_work"),
    "a product by another name": (
        MATMUL,
        PRODUCT_BY_TORCH.format("return copied(torch.einsum('ik,kj->ij', a, b))"),
        "policy.library_work",
    ),
    "a convolution for a product": (
        MATMUL,
        PRODUCT_BY_TORCH.format("return copied(F.conv1d(a[None], b.t()[:, :, None].contiguous()))"),
        "policy.library_work",
    ),
    "no kernel": (MATMUL, PRODUCT_BY_TORCH.format("return a.mm(b)"), "policy.no_kernel"),
    "torch.compile": (
        MATMUL,
        MATMUL + "\n\nclass ModelNew(nn.Module):\n    def forward(self, a, b):\n"
        "        return copied(torch.compile(Model())(a, b))\n",
        "policy.library_work",
    ),
    "the problem's forward inherited": (
        SOFTMAX,
        SOFTMAX + "\n\nclass ModelNew(Model):\n    pass\n",
        "policy.no_kernel",
    ),
    "the problem's forward asked for": (
        SOFTMAX,
        SOFTMAX + "\n\nclass ModelNew(Model):\n    def forward(self, x):\n        return copied(super().forward(x))\n",
        "policy.library_work",
    ),
    "softmax in pieces": (
        SOFTMAX,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                powers = torch.exp(x - torch.amax(x, dim=-1, keepdim=True))
                return copied(powers / torch.sum(powers, dim=-1, keepdim=True))
        """,
        "policy.library_work",
    ),
    "a module of torch called": (
        SOFTMAX,
        """
        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.work = nn.Softmax(dim=-1)

            def forward(self, x):
                return copied(self.work(x))
        """,
        "policy.library_work",
    ),
    "a module of torch inherited from": (
        SOFTMAX,
        """
        class ModelNew(nn.Softmax):
            def forward(self, x):
                return copied(super().forward(x))
        """,
        "policy.library_work",
    ),
    "the reference file read": (
        SOFTMAX,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                exec(open("problem.py").read())
                return copied(x)
        """,
        "policy.files",
    ),
    "the reference file imported": (
        SOFTMAX,
        """
        import problem

        class ModelNew(nn.Module):
            def forward(self, x):
                return copied(problem.Model()(x))
        """,
        "policy.files",
    ),
    "the inputs' seed replayed": (
        SOFTMAX,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                torch.manual_seed(42)
                return copied(x)
        """,
        "policy.random",
    ),
    "a fallback around the kernel": (
        SOFTMAX,
        """
        class ModelNew(nn.Module):
            def forward(self, x):
                try:
                    return copied(x)
                except Exception:
                    return x
        """,
        "policy.fallback",
    ),
}


@pytest.mark.parametrize("what", CHEATS)
def test_a_cheat_is_refused_before_it_runs(judge: Judge, tmp_path: Path, what: str) -> None:
    model, text, check = CHEATS[what]
    inputs = "[torch.randn(16, 16), torch.randn(16, 16)]" if model is MATMUL else "[torch.rand(8, 100)]"
    reference = problem(tmp_path, model, inputs)
    results = judge(solution(tmp_path, text, kernels=COPY_KERNEL), reference, "L0")
    assert results[-1].outcome == "failed"
    assert check in checks(results)


def test_a_model_that_needs_values_and_ignores_the_seed_is_a_problem_all_the_same(judge: Judge, tmp_path: Path) -> None:
    model = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.relu(x) if x.abs().max().item() > 1e9 else torch.relu(x)
    """
    inputs = "[torch.from_numpy(__import__('numpy').linspace(-1, 1, 600, dtype='float32')).reshape(3, 200)]"
    text = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return relu(x)\n"
    results = judge(solution(tmp_path, text, kernels=RELU_KERNEL), problem(tmp_path, model, inputs))
    assert [result.outcome for result in results] == ["passed", "passed", "passed"]
    assert any("the same values whatever the seed" in note for note in results[0].notes)


def test_an_operator_that_no_table_lists_is_a_problems_work_too(judge: Judge, tmp_path: Path) -> None:
    model = "class Model(nn.Module):\n    def forward(self, a):\n        return torch.linalg.cholesky(a)\n"
    text = "class ModelNew(nn.Module):\n    def forward(self, a):\n        return copied(torch.linalg.cholesky(a))\n"
    reference = problem(tmp_path, model, "[torch.rand(9, 9).triu() + 9 * torch.eye(9)]")
    results = judge(solution(tmp_path, text, kernels=COPY_KERNEL), reference, "L0")
    assert (results[-1].outcome, checks(results)) == ("failed", {"policy.library_work"})
    assert "torch does the cholesky" in results[-1].reason


def test_leaving_the_heavy_part_to_torch_is_for_a_person_to_judge(judge: Judge, tmp_path: Path) -> None:
    text = """
    class ModelNew(nn.Module):
        def __init__(self, columns, features):
            super().__init__()
            self.linear = nn.Linear(columns, features)

        def forward(self, x):
            return relu(self.linear(x))
    """
    reference = problem(tmp_path, LINEAR, "[torch.randn(16, 32)]", "[32, 24]")
    results = judge(solution(tmp_path, text, kernels=RELU_KERNEL), reference)
    assert (results[-1].level, results[-1].outcome) == ("L0", "suspect")
    assert "left for a kernel is the elementwise arithmetic" in results[-1].reason


def test_a_solutions_own_functions_may_bear_torchs_names(judge: Judge, tmp_path: Path) -> None:
    text = """
    class ModelNew(nn.Module):
        def softmax(self, x):
            out = torch.empty_like(x)
            softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
            return out

        def forward(self, x):
            return self.softmax(x)
    """
    kernel = (EXAMPLES / "row_softmax_triton.py").read_text(encoding="utf-8").partition("class ModelNew")[0]
    results = judge(solution(tmp_path, text, kernels=kernel), EXAMPLES / "row_softmax.py", "L0")
    assert (results[-1].outcome, results[-1].faults) == ("passed", ())
    source = (EXAMPLES / "scale_add_cuda.py").read_text(encoding="utf-8")
    renamed = source.replace('functions=["scale_add"]', 'functions=["mul"]')
    renamed = renamed.replace("extension.scale_add(", "extension.mul(")
    results = judge(write(tmp_path, "solution", renamed), EXAMPLES / "scale_add.py", "L0")
    assert (results[-1].outcome, results[-1].faults) == ("passed", ())


def test_torch_may_do_what_is_not_the_problems_work(judge: Judge, tmp_path: Path) -> None:
    text = """
    class ModelNew(nn.Module):
        def forward(self, x):
            return relu(torch.cat([x[:1], x[1:]]))
    """
    reference = problem(tmp_path, RELU, "[torch.rand(8, 100)]")
    results = judge(solution(tmp_path, text, kernels=RELU_KERNEL), reference)
    assert results[-1].outcome == "passed"
    assert any("torch works beside the kernel" in note for note in results[0].notes)


def test_work_that_names_do_not_show_is_counted_when_it_runs(terms: Terms, tmp_path: Path) -> None:
    text = """
    class ModelNew(nn.Module):
        def forward(self, a, b):
            own = copied(a)
            return copied(own.matmul(b))
    """
    reference = problem(tmp_path, MATMUL, "[torch.randn(16, 16), torch.randn(16, 16)]")
    hardware = compose.compose([], ()).config.hardware
    judged = problems.solution(solution(tmp_path, text, kernels=COPY_KERNEL), reference, hardware)
    allowing = replace(terms, policy=terms.policy.model_copy(update={"allow": ("policy.library_work",)}))
    result = climb(judged, "L2", allowing)[-1]
    assert (result.level, result.outcome) == ("L2", "failed")
    assert {fault.check for fault in result.faults} == {"correctness.library_work"}
    assert "torch did the matrix product" in result.reason
    assert "line" not in result.reason


WRONG = {
    "parameters swapped": (
        LINEAR,
        "[torch.randn(20, 32)]",
        HONEST["parameters of other names and forms, a Model carried along"][2],
        """
        class ModelNew(nn.Module):
            def __init__(self, columns, features):
                super().__init__()
                self.linear = nn.Linear(columns, features)

            def forward(self, x):
                weight, out = self.linear.weight, x.new_empty((x.shape[0], 24))
                kernel[(x.shape[0],)](x, weight, self.linear.bias, out, 24, columns=32, BLOCK=32)
                return out
        """,
        "correctness.values",
    ),
    "right for the announced inputs alone": (
        RELU,
        "[torch.rand(8, 100)]",
        COPY_KERNEL,
        "class ModelNew(nn.Module):\n    def forward(self, x):\n        return copied(x)\n",
        "correctness.values",
    ),
    "weights of its own": (
        LINEAR,
        "[torch.randn(20, 32)]",
        HONEST["parameters of other names and forms, a Model carried along"][2],
        """
        class ModelNew(nn.Module):
            def __init__(self, columns, features):
                super().__init__()
                self.packed = nn.Parameter(torch.randn(columns, features))
                self.offset = nn.Parameter(torch.zeros(features))

            def forward(self, x):
                out = x.new_empty((x.shape[0], 24))
                kernel[(x.shape[0],)](x, self.packed, self.offset, out, 24, columns=32, BLOCK=32)
                return out
        """,
        "correctness.values",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_is_refused_by_its_values(judge: Judge, tmp_path: Path, what: str) -> None:
    model, inputs, kernels, text, check = WRONG[what]
    reference = problem(tmp_path, model, inputs, "[32, 24]" if model is LINEAR else "[]")
    results = judge(solution(tmp_path, text, kernels=kernels), reference)
    assert (results[-1].level, results[-1].outcome) == ("L2", "failed")
    assert check in checks(results)


def test_a_problem_that_a_constant_passes_makes_a_pass_suspect(judge: Judge, tmp_path: Path) -> None:
    reference = problem(tmp_path, RELU, "[torch.zeros(8, 100)]")
    results = judge(
        solution(tmp_path, "class ModelNew(nn.Module):\n    forward = lambda self, x: relu(x)\n", kernels=RELU_KERNEL),
        reference,
    )
    assert (results[-1].level, results[-1].outcome) == ("L2", "suspect")
    assert checks(results) == {"correctness.weak_problem"}
    assert "one constant answer would pass this problem on every kind of inputs" in results[-1].reason
    assert any("whatever the seed" in note for note in results[0].notes)


def test_zeros_do_not_pass_where_all_right_values_are_tiny(judge: Judge, tmp_path: Path) -> None:
    """KernelBench's absolute tolerance of 1e-4 lets them: each of 20000 probabilities is about 5e-5."""
    kernel = """
    @triton.jit
    def zero_kernel(out, size, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, 0.0, mask=at < size)
    """
    text = """
    class ModelNew(nn.Module):
        def forward(self, x):
            out = torch.empty_like(x)
            zero_kernel[(triton.cdiv(x.numel(), 4096),)](out, x.numel(), BLOCK=4096)
            return out
    """
    reference = problem(tmp_path, SOFTMAX, "[torch.rand(4, 20000)]")
    inputs = torch.rand(4, 20000)
    assert torch.allclose(torch.zeros_like(inputs), inputs.softmax(-1), rtol=1e-4, atol=1e-4)
    results = judge(solution(tmp_path, text, kernels=kernel), reference)
    assert (results[-1].level, results[-1].outcome) == ("L2", "failed")


def test_a_problem_too_large_for_the_interpreter_is_inconclusive_and_says_so(judge: Judge, tmp_path: Path) -> None:
    reference = problem(tmp_path, RELU, "[torch.rand(64, 1 << 20)]")
    text = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return relu(x)\n"
    results = judge(solution(tmp_path, text, kernels=RELU_KERNEL), reference)
    assert [(result.level, result.outcome) for result in results] == [
        ("L0", "passed"),
        ("L1", "passed"),
        ("L2", "inconclusive"),
    ]
    assert "too large for Triton's interpreter" in results[-1].reason


BAD_PROBLEMS = {
    "no Model": (HEAD + "def get_inputs(): return []\ndef get_init_inputs(): return []\n", "has no Model"),
    "not Python": ("class Model(:\n", "line 1: the problem is not Python"),
    "import fails": ("import not_there_at_all\n", "its import raised ModuleNotFoundError"),
    "ends the process": ("import sys\nsys.exit(0)\n", "its import raised SystemExit"),
    "get_inputs raises": (
        HEAD + RELU + "def get_inputs(): raise ValueError('no inputs today')\ndef get_init_inputs(): return []\n",
        "get_inputs raised ValueError: no inputs today",
    ),
    "Model raises": (
        HEAD + RELU + "def get_inputs(): return ['text']\ndef get_init_inputs(): return []\n",
        "Model's forward raised TypeError",
    ),
    "draws lots": (
        HEAD
        + "class Model(nn.Module):\n    def forward(self, x): return F.dropout(x, 0.5, training=True)\n"
        + "def get_inputs(): return [torch.rand(50)]\ndef get_init_inputs(): return []\n",
        "gives another answer each time",
    ),
}


@pytest.mark.parametrize("what", BAD_PROBLEMS)
def test_a_bad_problem_ends_in_one_sentence(judge: Judge, tmp_path: Path, what: str) -> None:
    text, sentence = BAD_PROBLEMS[what]
    with pytest.raises(BadInput, match=sentence) as raised:
        judge(EXAMPLES / "row_softmax_triton.py", write(tmp_path, "problem", text))
    assert "\n" not in str(raised.value)
    assert "problem.py" in str(raised.value)


def test_a_missing_file_ends_in_one_sentence(judge: Judge, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.py"):
        judge(EXAMPLES / "row_softmax_triton.py", tmp_path / "nowhere.py")
    with pytest.raises(BadInput, match=r"nowhere\.py"):
        judge(tmp_path / "nowhere.py", EXAMPLES / "row_softmax.py")


def test_a_solution_that_is_not_python_or_has_no_model_is_a_verdict(judge: Judge, tmp_path: Path) -> None:
    reference = EXAMPLES / "row_softmax.py"
    results = judge(write(tmp_path, "solution", "class ModelNew(:\n"), reference)
    assert (results[-1].level, results[-1].outcome, checks(results)) == ("L0", "failed", {"policy.syntax"})
    results = judge(write(tmp_path, "solution", HEAD), reference)
    assert (results[-1].level, results[-1].outcome) == ("L0", "failed")


def test_the_door_finds_problems_without_loading_torch() -> None:
    code = "import sys, kernelgen.judging.problems\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_call_without_an_end_on_a_cpu_is_not_known_to_be_wrong(terms: Terms, tmp_path: Path) -> None:
    text = """
    class ModelNew(nn.Module):
        def forward(self, x):
            while x.shape[0] and not x.is_meta:
                relu(x)
            return relu(x)
    """
    hardware = compose.compose([], ()).config.hardware
    reference = problem(tmp_path, RELU, "[torch.rand(8, 100)]")
    judged = problems.solution(solution(tmp_path, text, kernels=RELU_KERNEL), reference, hardware)
    soon = replace(terms, policy=terms.policy.model_copy(update={"level_timeout_s": 3.0}))
    result = climb(judged, "L2", soon)[-1]
    assert (result.level, result.outcome, result.faults) == ("L2", "inconclusive", ())
    assert "no end within 3 s through the interpreter" in result.reason


def test_kernels_are_cut_out_of_a_hosts_code_each_on_its_own_lines() -> None:
    text = (EXAMPLES / "scale_add_cuda.py").read_text(encoding="utf-8").split('"""')[3]
    wrapped = text.replace("__global__", "namespace {\n#define ONE 1\n__global__").replace(
        "torch::Tensor", "}\ntorch::Tensor", 1
    )
    alone = kernels_alone(wrapped)
    assert "scale_add_kernel(const float* x" in alone
    assert "torch" not in alone.lower()
    assert "<<<" not in alone
    assert alone.split("scale_add_kernel")[0].count("\n") == wrapped.split("scale_add_kernel")[0].count("\n")
    assert kernels_alone("torch::Tensor f(torch::Tensor x) { return x; }") == ""


@pytest.mark.skipif(cuda.find_nvcc() is None, reason="no nvcc on this machine")
def test_a_loaders_kernel_that_no_card_has_room_for_fails(judge: Judge, tmp_path: Path) -> None:
    source = (EXAMPLES / "scale_add_cuda.py").read_text(encoding="utf-8")
    large = source.replace("if (at < size)", "__shared__ float held[1 << 16]; held[at % 7] = x[at]; if (at < size)")
    results = judge(
        write(tmp_path, "solution", large.replace("y[at];", "y[at] + held[at % 5];")), EXAMPLES / "scale_add.py"
    )
    assert (results[-1].level, results[-1].outcome, checks(results)) == ("L1", "failed", {"compile.shared_memory"})


def test_a_verdict_on_a_problem_teaches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["constraints", "seed", "hardware=h200"]) == 0
    lines = (tmp_path / "constraints.jsonl").read_text()
    (tmp_path / "bad.py").write_text("import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x:\n")
    problem_file = Path(__file__).resolve().parents[2] / "examples" / "problems" / "row_softmax.py"
    assert cli.main(["judge", "bad.py", f"reference={problem_file}", "level=L0"]) == 1
    assert (tmp_path / "constraints.jsonl").read_text() == lines
