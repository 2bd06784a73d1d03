"""Parsing Python that others wrote: whatever is wrong with it is one `SyntaxError`, and nothing is printed."""

from __future__ import annotations

import ast
import warnings


def parse(source: str) -> ast.Module:
    """The syntax tree. Raises SyntaxError, its `msg` in words, also for a NUL or what is nested too deep."""
    try:
        with warnings.catch_warnings():
            # Python warns of an odd literal or escape in foreign source: that is its author's affair
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (ValueError, UnicodeError) as error:
        raise SyntaxError(str(error)) from error
    except (RecursionError, MemoryError) as error:
        raise SyntaxError("it is nested too deep") from error
