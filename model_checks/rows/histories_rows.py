"""Histories of hits, delayed reads and deferred writes: each case, defect or wrong reading with its calls fixed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.model_checks.rows.plans import NOTE
from tenure.model_checks.rows.scripts import (
    ALL,
    AT_ONCE_BEGUN,
    C,
    D,
    H,
    History,
    M,
    aborts,
    arrive,
    comes_back,
    ends,
    goes_on,
    last,
    step,
)

HITS_AND_WRITES: Final[Mapping[str, History]] = MappingProxyType(
    {
        # --- Hits of the same step -------------------------------------------------------------------------------
        "same-step-hit": History(
            "D01, A01, W1",
            (
                step(arrive("old"), rows="old:0:1", emits=(H, M)),
                step(
                    *ends("old"), arrive("a"), arrive("b", 1, 0, nodes=(2,)), rows="a:0:2 b:1:3", emits=(H, M), to=[ALL]
                ),
                last(*ends("a", "b")),
            ),
        ),
        "same-step-hit-on-fresh-blocks": History(
            "A02",
            (
                step(arrive("a"), arrive("b", 1, 0, nodes=(1,)), rows="a:0:1 b:1:2", to=["discard", ("b",)]),
                step(arrive("c", 1, 0, nodes=(1,)), rows="c:2:3", to=[ALL]),
                last(*ends("a", "b", "c")),
            ),
        ),
        "same-step-hit-on-deferred-rows": History(
            "D01",
            (
                step(arrive("old"), rows="old:0:1", emits=(C,)),
                step(
                    *ends("old"), arrive("a"), arrive("b", 1, 0, nodes=(2,)), rows="a:0:2 b:1:3", emits=(C,), to=[ALL]
                ),
                last(*ends("a", "b")),
            ),
            heavy=26_000,
        ),
        "raw-claims-at-the-save": History(
            "W5",
            (
                step(arrive("c"), rows="c:0:1", emits=(C,)),
                step(*ends("c"), arrive("a"), rows="a:0:2", emits=(M,)),
                step(arrive("b", 1, 0, nodes=(2,)), rows="b:1:3", emits=(C,), to=[ALL]),
                last(*ends("a", "b")),
            ),
            blocks=2,
        ),
        # --- Delayed reads ---------------------------------------------------------------------------------------
        "delayed-read": History(
            "A03, A04",
            (
                step(arrive("a", 2), rows="a:0:1 a:1:2"),
                step(*ends("a"), arrive("r", 1, 0, 1, nodes=(1, 2)), rows="r:2:3", to=[ALL]),
                step(arrive("b", 2), rows="b:1:4 b:3:5"),
                last(*ends("r", "b")),
            ),
            pages=4,
        ),
        "rows-that-look-absent": History(
            "W4",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL]),
                step(arrive("x"), rows="x:0:3", emits=(M,)),
                step(*ends("x"), arrive("d"), rows="d:0:4", emits=(C,)),
                last(*ends("b", "d")),
            ),
            blocks=2,
            pages=4,
            more=AT_ONCE_BEGUN,
            heavy=3_900,
        ),
        "read-holds-buffers": History(
            "W6",
            (
                step(arrive("a"), arrive("b"), rows="a:0:1 b:1:2", emits=(C,)),
                step(*ends("b"), arrive("d", 1, 1, nodes=(2,)), rows="d:2:3", emits=(C,), to=[ALL]),
                step(*ends("d"), arrive("e"), rows="e:1:4", emits=(C,)),
                last(*ends("a", "e")),
            ),
            blocks=3,
            more=AT_ONCE_BEGUN,
            heavy=7_000,
        ),
        "running-read-is-dropped": History(
            "W8",
            (
                step(arrive("c"), rows="c:0:1", emits=(M,)),
                step(
                    *ends("c"),
                    arrive("a"),
                    arrive("b", 1, 0, nodes=(2,)),
                    rows="a:0:2 b:1:3",
                    emits=(M,),
                    to=[ALL, ("a",), "discard"],
                    dropped=None,
                ),
                last(*ends("a", "b")),
            ),
            blocks=2,
            pages=2,
        ),
        # --- Deferred writes -------------------------------------------------------------------------------------
        "growing-deferred-write": History(
            "W2, R16",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(goes_on("a"), rows="a:1:2", emits=(M,)),
                step(comes_back("a"), arrive("b", 1, 1, nodes=(3,)), rows="a:1:3 b:2:4", emits=(C,), to=[("b",)]),
                last(*ends("a", "b")),
            ),
            blocks=3,
        ),
        "rewritten-by-its-own-write": History(
            "W2",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL]),
                step(comes_back("a"), rows="a:0:3", emits=(C,)),
                last(*ends("a", "b")),
            ),
            blocks=2,
            pages=3,
        ),
        "one-write-a-request": History(
            "W3, D14",
            (
                step(arrive("c"), arrive("a"), rows="c:0:1 a:1:2", emits=(C,)),
                step(*ends("c"), arrive("b", 1, 1, nodes=(2,)), rows="b:2:3", emits=(C,), to=[ALL]),
                last(*ends("a"), *ends("b")),
            ),
            blocks=3,
        ),
        "abort-keeps-its-rows": History(
            "A05",
            (
                step(arrive("a"), rows="a:0:1", emits=(C, NOTE), to=[ALL]),
                step(aborts("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL]),
                last(*ends("b")),
            ),
            blocks=2,
            heavy=12_000,
        ),
        "rows-of-several-sources": History(
            "R16",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(*ends("a"), arrive("e", 1, 0, nodes=(1,)), rows="e:1:2", emits=(C,)),
                step(arrive("b", 1, 0, 1, nodes=(1, 2)), rows="b:2:3", emits=(C,), to=[ALL]),
                last(*ends("e", "b")),
            ),
            blocks=3,
            more=AT_ONCE_BEGUN,
            heavy=15_000,
        ),
        "zeros-among-rows": History(
            "R14",
            (
                step(arrive("a"), rows="a:0:1", emits=(M,)),
                step(goes_on("a"), rows="a:1:2"),
                step(arrive("b", 1, 0, 1, nodes=(1, 2)), rows="b:2:3", emits=(M,), to=[ALL]),
                last(*ends("a", "b")),
            ),
            blocks=3,
        ),
        "resumed-with-a-hit": History(
            "A11",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=[ALL]),
                step(comes_back("a", 1, 0), rows="a:2:3", emits=(C,), to=[ALL]),
                last(*ends("a", "b")),
            ),
            blocks=3,
        ),
        "byte-budget": History(
            "A09",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(goes_on("a"), arrive("x"), rows="a:1:2 x:3:9", emits=(C,)),
                step(goes_on("a"), arrive("d", 1, 0, 1, nodes=(1, 2)), rows="a:2:3 d:4:4", emits=(C,), to=[("d",)]),
                last(*ends("a", "d", "x")),
            ),
            blocks=5,
            budget=4,
            more=AT_ONCE_BEGUN,
            heavy=13_000,
        ),
        "two-deferred-names": History(
            "A09",
            (
                step(arrive("a", 2), rows="a:0:1 a:1:2", emits=(C,)),
                step(arrive("b", 1, 0, nodes=(1,)), rows="b:2:3", emits=(C, D), to=[ALL]),
                step(*ends("a"), goes_on("b"), rows="b:1:4", emits=(D,)),
                last(*ends("b")),
            ),
            blocks=3,
            budget=3,
            heavy=20_000,
        ),
        "late-completion": History(
            "A15",
            (
                step(arrive("a", 2), rows="a:0:1 a:1:2", emits=(C,)),
                step(*ends("a"), arrive("c"), rows="c:0:3", emits=(C,)),
                step(*ends("c"), arrive("a"), rows="a:1:4", emits=(C,)),
                last(*ends("a")),
            ),
            blocks=2,
        ),
        "scatters-in-order": History(
            "W12",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(*ends("a"), arrive("c"), rows="c:0:2", emits=(C,)),
                last(*ends("c")),
            ),
            blocks=1,
        ),
    }
)
"""Every scenario of rows, by name."""
