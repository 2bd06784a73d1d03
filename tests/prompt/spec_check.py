"""What the specification wants to see in a prompt and in a candidate, looked for in real outputs.

Each element is a pattern in the specification's own words; a check returns the names of the elements that are missing.
Nothing is taken from kernelgen's code, so that a change there cannot move the yardstick too.
"""

from __future__ import annotations

import re

SYSTEM = {
    "[SYSTEM] sentence": r"\A\[SYSTEM\] You are a GPU kernel engineer optimizing for \S.*\.$",
}
USER = {
    "[CONSTRAINTS] heading": r"^\[CONSTRAINTS — from database, always injected\]$",
    "HARD list": r"^HARD: .*cannot be overridden.*\n- .+$",
    "SOFT list": r"^SOFT: prefer to avoid unless you have a specific reason.*\n- .+$",
    "POSITIVE list": r"^POSITIVE: this approach worked before.*\n- .+$",
    "[PROFILE] heading": r"^\[PROFILE — from /profile-kernel output\]$",
    "roofline classification": r"^Current bottleneck: \S.*$",
    "limiting factor": r"^Limiting factor: \S.*$",
    "target metric": r"^Target metric: \S.*$",
    "[CHAMPION] heading": r"^\[CHAMPION — current best\]$",
    "champion's source": r"^(`{3,})(?:python|cuda)\n(?:.*\n)+?\1$(?=\nPerformance)",
    "champion's performance": r"^Performance: .*TFLOPS.*BW.*occupancy.*$",
    "[STATE VECTOR] heading": r"^\[STATE VECTOR — current approach\]$",
    "state and approach": r"^You are at State [0-5]: \S.*$",
    "previous states": r"^Previous states attempted:(?: none$|(?:\n- .+)+$)",
    "[TASK] heading": r"^\[TASK\]$",
    "the task": r"^Generate an optimized kernel that improves on the champion\.$",
    "hypothesis asked for": r"^Explain your optimization hypothesis in the header comment\.$",
}
ORDER = ("[CONSTRAINTS", "[PROFILE", "[CHAMPION", "[STATE VECTOR", "[TASK]")

HEADER = {
    "header: target": r"^(?:#| \*) target: \w+$",
    "header: hardware": r"^(?:#| \*) hardware: \S.*$",
    "header: state vector position": r"^(?:#| \*) state: [0-5]$",
    "header: champion": r"^(?:#| \*) champion: \S.*$",
    "header: champion's figure": r"^(?:#| \*) champion figure:(?: not measured$|\n(?:#| \*)   \S.*$)",
    "header: hypothesis": r"^(?:#| \*) hypothesis:\n(?:#| \*)   .*\S.*$",
    "header: constraints applied": r"^(?:#| \*) constraints applied:\n(?:#| \*)   (?:hard|soft|positive) [^:]+: \S.*$",
    "header: overrides": r"^(?:#| \*) overrides:(?: none$|\n(?:#| \*)   [\w.-]+: \S.*$)",
    "header: constraints left out": r"^(?:#| \*) constraints left out:(?: none$|\n(?:#| \*)   [\w.-]+$)",
    "header: prompt's hash": r"^(?:#| \*) prompt: sha256:[0-9a-f]{64}$",
    "header: reply's hash": r"^(?:#| \*) reply: sha256:[0-9a-f]{64}$",
}
TEST = {
    "door": r'^if __name__ == "__main__":$',
    "test function": r"^def test_correctness\(",
    "test: PyTorch reference": r"^ +expected = target\.reference\(\*\*inputs\)$",
    "test: calls the kernel": r"^ +(?:got = \w+\(\*\*inputs\)|launch\(\*inputs\.values\(\), .*\))$",
    "test: compares within rtol": r"^ +wrong = target\.compare\(inputs, expected, got, KERNELGEN_TOLERANCE\)$",
    "test: asserts": r"^ +assert not wrong\b",
    "test: rtol": r"^KERNELGEN_TOLERANCE = \{.*\(.+, .+\)\}$",
}
KERNEL = {
    "kernel": r"the model's part begins ====\n(?:.*\S.*\n)(?:.*\n)*?(?:#|//) ==== kernelgen: the model's part ends"
}
CONFIGS = {"autotuning config": r"^AUTOTUNE_CONFIGS: .* = \{\n    '\w+': \[\n        triton\.Config\("}
PATH = re.compile(r"scripts/kernels/(\w+)/(g\w+)\.(py|cu)")


def missing_from_prompt(messages: list[dict[str, str]]) -> list[str]:
    """The specification's elements that the messages of a prompt lack; first system, last user."""
    system, user = messages[0], messages[-1]
    found = [name for name, role, message in (("system message", "system", system), ("user message", "user", user))
             if message["role"] != role]  # fmt: skip
    found += _missing(SYSTEM, system["content"]) + _missing(USER, user["content"])
    places = [re.search(rf"^{re.escape(heading)}", user["content"], re.MULTILINE) for heading in ORDER]
    starts = [place.start() for place in places if place]
    return found if starts == sorted(starts) else [*found, "order of the sections"]


def missing_from_candidate(files: dict[str, str], *, autotuned: bool) -> list[str]:
    """The specification's elements that a candidate's files lack, by path, the candidate itself first.

    `autotuned`: whether its reply had configurations, as a Triton candidate's may.
    """
    (path, text), *others = files.items()
    name = PATH.fullmatch(path)
    test = text
    if name and name[3] == "cu":
        test = dict(others).get(f"scripts/kernels/{name[1]}/{name[2]}_test.py", "")
    found = [] if name else ["path scripts/kernels/{target}/{iteration_id}"]
    found += _missing(HEADER, text) + _missing(KERNEL, text) + _missing(TEST, test)
    return found + (_missing(CONFIGS, text) if autotuned else [])


def _missing(elements: dict[str, str], text: str) -> list[str]:
    return [name for name, pattern in elements.items() if not re.search(pattern, text, re.MULTILINE)]
