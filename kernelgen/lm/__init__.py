"""The doors to language models: the embedded playbook, recorded replies, and any OpenAI-compatible endpoint.

`build` makes the `dspy.LM`; the prompt's adapter asks it with an explicit `dspy.lm15.Request`; `to_answer` and
`translate` turn what comes back into kernelgen's own `Answer` or error. Importing this package loads no dspy and opens
no connection. Keys are read from the environment only and appear in no record, message or representation.
"""

from kernelgen.lm.answer import parameters, request_key, to_answer, versions
from kernelgen.lm.doors import build, check
from kernelgen.lm.errors import translate
from kernelgen.lm.secrets import redact

__all__ = ["build", "check", "parameters", "redact", "request_key", "to_answer", "translate", "versions"]
