"""The playbook: a deterministic stand-in for a language model, which reads nothing but the prompt.

State 0 searches configurations of any Triton champion, state 1 has rewrites of its own; for the other states and for
targets without a play it says so. It does not learn, and a prompt gives the same reply on every machine.
"""

from __future__ import annotations

from kernelgen.errors import NoPlay
from kernelgen.playbook.reading import read

AUTOTUNING, REWRITING = 0, 1


def answer(prompt: str) -> str:
    """A reply in the form of docs/formats.md to a prompt's messages, joined by blank lines.

    Raises:
        NoPlay: the prompt lacks something, or the playbook has nothing for it; the sentence says what.
    """
    request = read(prompt)
    # after reading: a prompt that lacks something is told at once, without what the answers need
    from kernelgen.playbook import autotune, library

    if request.state == AUTOTUNING:
        return autotune.propose(request)
    if request.state == REWRITING:
        return library.rewrite(request)
    raise NoPlay(
        f"The playbook has no kernels in {request.dsl} for state {request.state}: use lm=openai_compatible with a "
        "model, or state 0 or 1."
    )
