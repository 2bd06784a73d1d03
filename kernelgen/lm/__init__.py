"""The doors to language models: the embedded playbook, recorded replies, and the wires of providers and servers.

`build` makes the `dspy.LM`; the prompt's adapter asks it with an explicit `dspy.lm15.Request`; `to_answer` and
`translate` turn what comes back into kernelgen's own `Answer` or error. Importing this package loads no dspy and opens
no connection. Keys are read from the environment only and appear in no record, message or representation.
"""

from kernelgen.lm.answer import parameters, request_key, to_answer, versions
from kernelgen.lm.budget import Spent, is_limited, over_budget
from kernelgen.lm.doors import build, check
from kernelgen.lm.ends import OverBudget, Unanswered, UnusableReply, is_refusal
from kernelgen.lm.errors import translate
from kernelgen.lm.prices import price
from kernelgen.lm.secrets import redact

__all__ = [
    "OverBudget",
    "Spent",
    "Unanswered",
    "UnusableReply",
    "build",
    "check",
    "is_limited",
    "is_refusal",
    "over_budget",
    "parameters",
    "price",
    "redact",
    "request_key",
    "to_answer",
    "translate",
    "versions",
]
