"""Interrupts a piece of the core between any two of its lines, as Ctrl-C or a signal handler would."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

# What undoes a transition cannot itself be undone; and what merely looks on changes nothing.
PASSED_OVER = ("revert", "_revert_entry", "_revert_tails", "scalars", "edited", "_edited", "<listcomp>")


def interrupted_at(line: int, act: Callable[[], object]) -> bool:
    """Run `act` and interrupt it before its `line`-th line in the core; False if it ended before."""
    seen = 0

    def trace(frame: FrameType, kind: str, _: Any) -> Any:
        nonlocal seen
        if "/core/" not in frame.f_code.co_filename or frame.f_code.co_name in PASSED_OVER:
            return None
        if kind == "line":
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(outer)
    return False
