"""Histories in which something is overtaken by something else: no public case, but a gap between those there are."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.rows.scripts import ALL, History, M, arrive, ends, faults, goes_on, last, step

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
    }
)
"""Every scenario of what is overtaken, by name."""
