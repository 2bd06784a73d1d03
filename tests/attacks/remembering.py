"""Remembers answers by all of their inputs' contents, which a kernel compares: what it returns is always right.

Nothing up to L2 can hold that against a candidate; where the same inputs are timed again and again it wins. A
generator holds what it remembers.
"""

from __future__ import annotations

from tests.attacks.source import text

SAME = """
@triton.jit
def same_kernel(a_ptr, b_ptr, differ_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    differ = tl.load(a_ptr + place, mask=inside) != tl.load(b_ptr + place, mask=inside)
    if tl.sum((differ & inside).to(tl.int32), axis=0) > 0:
        tl.store(differ_ptr, 1)


def is_same(known, given):
    if known.shape != given.shape:
        return False
    n = known.numel()
    differ = torch.zeros(1, dtype=torch.int32, device=given.device)
    same_kernel[(1,)](known, given, differ, n, BLOCK=triton.next_power_of_2(n))
    return differ.item() == 0


def remember():
    held = []
    given = yield
    while True:
        first, second, rest = given
        answer = None
        for known_first, known_second, known_rest, out in held:
            if known_rest == rest and is_same(known_first, first) and is_same(known_second, second):
                answer = KNOWN
                break
        if answer is None:
            answer = launch(first, second, *rest)
            held.append((first.clone(), second.clone(), rest, answer.clone()))
        given = yield answer


memory = remember()
next(memory)
"""


def remembering(known: str = "out.clone()") -> str:
    """The candidate's part that remembers what its `launch` computed; `known` is what it answers the second time."""
    return text(SAME.replace("KNOWN", known))
