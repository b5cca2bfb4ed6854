"""Histories of no public case: something is overtaken, fails a second time, or is moved under a read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.rows.scripts import (
    ALL,
    AT_ONCE_BEGUN,
    C,
    D,
    H,
    History,
    M,
    arrive,
    ends,
    faults,
    goes_on,
    last,
    step,
)

OVERTAKEN: Final[Mapping[str, History]] = MappingProxyType(
    {
        "two-preserves-one-fails": History(
            "R13: rows of one read are set aside twice",
            (
                step(arrive("a", 2), rows="a:0:1 a:1:2", emits=(M,)),
                step(*ends("a"), arrive("r", 1, 0, 1, nodes=(1, 2)), rows="r:2:3", emits=(M,), to=[ALL, "discard"]),
                step(arrive("b"), rows="b:0:4", emits=(M,)),
                step(goes_on("b"), rows="b:1:5", emits=(M,)),
                last(*ends("r", "b")),
            ),
            blocks=3,
            pages=3,
            more=faults(failures=1, begins_apart=False),
            resume=5,
            fails_at="preserve",
        ),
        "two-names-set-aside": History(
            "R13: one save sets aside rows of two names",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, M)),
                step(*ends("a"), arrive("r", 1, 0, nodes=(1,)), rows="r:1:2", emits=(H, M), to=[ALL]),
                step(arrive("b"), rows="b:0:3", emits=(H, M)),
                last(*ends("r", "b")),
            ),
            blocks=2,
            pages=3,
            more=AT_ONCE_BEGUN,
        ),
        "chunks-of-other-names": History(
            "R10: chunks of one write have rows of different names",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(goes_on("a"), rows="a:1:2", emits=(D,)),
                last(*ends("a")),
            ),
            blocks=2,
            pages=2,
            more=AT_ONCE_BEGUN,
        ),
        "clones-behind-a-reset": History(
            "R08: a save waits for bytes that clones behind a reset hold",
            (
                step(arrive("a"), rows="a:0:1", emits=(M, C), to=["discard"]),
                last(*ends("a")),
                step(arrive("b"), rows="b:0:2", emits=(C,), to=["discard"]),
                last(*ends("b")),
            ),
            blocks=1,
            pages=3,
            budget=2,
            more=faults(resets=1, begins_apart=False),
            resume=2,
        ),
        "partial-materialize-overtaken": History(
            "R24: a failure and a reset overtake a materialize of some requests",
            (
                step(arrive("a"), arrive("x"), rows="a:0:1 x:1:2", emits=(M,)),
                step(
                    *ends("a", "x"),
                    arrive("b", 1, 0, nodes=(1,)),
                    arrive("d", 1, 1, nodes=(2,)),
                    rows="b:2:3 d:3:4",
                    emits=(M,),
                    to=[("b",), "discard"],
                ),
                last(*ends("b", "d")),
            ),
            pages=2,
            more=faults(failures=1, begins_apart=False),
            resume=3,
            fails_at="scatter of write 2",
        ),
        "fails-twice": History(
            "R12, R24: after a reset, or before it, another command fails",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,), to=["discard"]),
                last(*ends("a")),
                step(arrive("z"), rows="z:0:5", emits=(M,), to=["discard"]),
                last(*ends("z")),
            ),
            blocks=1,
            pages=2,
            more=faults(failures=2, begins_apart=False),
            resume=2,
        ),
        "fails-twice-under-a-hit": History(
            "R12, R23: what a read counts on fails, and something else does",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL, "discard"]),
                last(*ends("b")),
            ),
            blocks=2,
            pages=2,
            more=faults(failures=2, begins_apart=False),
            resume=2,
            heavy=34_000,
        ),
        "chunks-put-together": History(
            "R16: chunks of an open write move while a read that needs them is planned, runs or is done",
            (
                step(arrive("a"), arrive("b"), rows="a:0:1 b:1:2", emits=(C,)),
                step(goes_on("a"), rows="a:2:3", emits=(C,)),
                step(*ends("a"), arrive("c", 1, 1, nodes=(2,)), rows="c:3:4", emits=(C,), to=[ALL]),
                last(*ends("b", "c")),
            ),
            more=faults(begins_apart=False),
        ),
    }
)
"""Every scenario of what is overtaken, by name."""
