"""Histories with fixed calls: each case, each defect, each wrong reading. Every order of the rest is explored.

Blocks of one slot unless a history needs more; nodes of the token tree are small numbers, told apart by request.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tenure.core.config import RowConfig
from tenure.core.rows.names import HIDDEN
from tenure.model_checks.model import ScopeSet
from tenure.model_checks.rows.environment import Bounds
from tenure.model_checks.rows.model import RowsModel
from tenure.model_checks.rows.plans import AT_ONCE, NOTE, Change, Script, StepPlan, Token

H, M, C, D = HIDDEN, "m", "c", "d"
CI: Final[frozenset[ScopeSet]] = frozenset({"ci", "deep"})
ALL: Final = object()
"""A step is materialized for all of its requests."""


class History(NamedTuple):
    """A scenario.

    Attributes:
        source: the case, defect or wrong reading it is.
        steps: what the engine does.
        blocks, pages, budget: of the machine; a row has one byte.
        more: further arguments of the model.
        resume: the step from which the engine goes on after a reset.
        sets: the named sets it belongs to.
        heavy: about how many states it has.
        has_progress: whether progress is checked.
    """

    source: str
    steps: tuple[StepPlan, ...]
    blocks: int = 4
    pages: int = 3
    budget: int = 1000
    more: Mapping[str, Any] = MappingProxyType({})
    resume: int | None = None
    sets: frozenset[ScopeSet] = CI
    heavy: int = 5000
    has_progress: bool = False

    @property
    def config(self) -> RowConfig:
        """The machine's; where builders lag, as few pages as it takes for that."""
        lag = self.more.get("lag", 1)
        for pages in [self.pages] if lag == 1 else range(2, 9):
            try:
                return RowConfig(
                    num_blocks=self.blocks,
                    block_size=1,
                    page_rows_max=8,
                    pages=pages,
                    budget_bytes=self.budget,
                    builder_lag_max=lag,
                )
            except ValueError:
                continue
        msg = f"no depth of the staging pool is enough for builders that lag by {lag}"
        raise ValueError(msg)

    def model(self) -> RowsModel:
        """The model, built anew."""
        return RowsModel(self.config, Script(self.steps, self.resume), **self.more)


def arrive(request: str, tokens: int = 1, *hit: int, nodes: tuple[int, ...] = (), named: bool = False) -> Change:
    """A request arrives, with a hit on these blocks."""
    return Change("start", request, tokens, hit, nodes, named)


def goes_on(request: str, tokens: int = 1) -> Change:
    """A live request computes more."""
    return Change("go on", request, tokens)


def comes_back(request: str, tokens: int = 1) -> Change:
    """A preempted request computes anew."""
    return Change("resume", request, tokens)


def ends(*requests: str) -> tuple[Change, ...]:
    """Requests finish."""
    return tuple(Change("finish", request) for request in requests)


def aborts(request: str) -> Change:
    """A request is aborted."""
    return Change("abort", request)


def step(
    *changes: Change,
    rows: str,
    emits: tuple[str, ...] = (H,),
    to: Any = AT_ONCE,
    computes: tuple[tuple[int, int], ...] = (),
    dropped: bool | None = False,
) -> StepPlan:
    """A step; `rows` are `request:slot:node`, and `to` says who gets it (`ALL`, ids, "discard", a list of those)."""
    tokens = tuple(_token(each) for each in rows.split())
    batch = tuple(dict.fromkeys(token.request for token in tokens))
    choices = to if isinstance(to, list) else [to]
    consumers = tuple(batch if choice is ALL else choice for choice in choices)
    return StepPlan(changes, tokens, emits, computes, consumers, dropped)


def _token(text: str) -> Token:
    request, slot, node = text.split(":")
    return Token(request, int(slot), int(node))


def last(*changes: Change) -> StepPlan:
    """A start without tokens."""
    return StepPlan(changes)


def faults(failures: int = 0, resets: int = 0, abandons: int = 0, shutdowns: int = 0, **more: Any) -> Mapping[str, Any]:
    """How often something may go wrong."""
    return MappingProxyType({"bounds": Bounds(failures, resets, abandons, shutdowns), **more})


HISTORIES: Final[Mapping[str, History]] = MappingProxyType(
    {
        # --- Hits of the same step ----------------------------------------------------------------------------
        "same-step-hit": History(
            "D01, A01, W1",
            (
                step(arrive("old"), rows="old:0:1", emits=(H, M)),
                step(
                    *ends("old"), arrive("a"), arrive("b", 1, 0, nodes=(2,)), rows="a:0:2 b:1:3", emits=(H, M), to=ALL
                ),
                last(*ends("a", "b")),
            ),
        ),
        "same-step-hit-on-fresh-blocks": History(
            "A02",
            (
                step(arrive("a"), arrive("b", 1, 0, nodes=(1,)), rows="a:0:1 b:1:2", to=["discard", ("b",)]),
                step(arrive("c", 1, 0, nodes=(1,)), rows="c:2:3", to=ALL),
                last(*ends("a", "b", "c")),
            ),
        ),
        "same-step-hit-on-deferred-rows": History(
            "D01",
            (
                step(arrive("old"), rows="old:0:1", emits=(C,)),
                step(*ends("old"), arrive("a"), arrive("b", 1, 0, nodes=(2,)), rows="a:0:2 b:1:3", emits=(C,), to=ALL),
                last(*ends("a", "b")),
            ),
        ),
        "raw-claims-at-the-save": History(
            "W5",
            (
                step(arrive("c"), rows="c:0:1", emits=(C,)),
                step(*ends("c"), arrive("a"), rows="a:0:2", emits=(M,)),
                step(arrive("b", 1, 0, nodes=(2,)), rows="b:1:3", emits=(C,), to=ALL),
                last(*ends("a", "b")),
            ),
            blocks=2,
        ),
        # --- Delayed reads ------------------------------------------------------------------------------------
        "delayed-read": History(
            "A03, A04",
            (
                step(arrive("a", 2), rows="a:0:1 a:1:2"),
                step(*ends("a"), arrive("r", 1, 0, 1, nodes=(1, 2)), rows="r:2:3", to=ALL),
                step(arrive("b", 2), rows="b:1:4 b:3:5"),
                last(*ends("r", "b")),
            ),
            pages=4,
        ),
        "rows-that-look-absent": History(
            "W4",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,)),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=ALL),
                step(arrive("x"), rows="x:0:3", emits=(M,)),
                step(*ends("x"), arrive("d"), rows="d:0:4", emits=(C,)),
                last(*ends("b", "d")),
            ),
            blocks=2,
            pages=4,
        ),
        "read-holds-buffers": History(
            "W6",
            (
                step(arrive("a"), arrive("b"), rows="a:0:1 b:1:2", emits=(C,)),
                step(*ends("b"), arrive("d", 1, 1, nodes=(2,)), rows="d:2:3", emits=(C,), to=ALL),
                step(*ends("d"), arrive("e"), rows="e:1:4", emits=(C,)),
                last(*ends("a", "e")),
            ),
            blocks=3,
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
        # --- Deferred writes ----------------------------------------------------------------------------------
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
                step(arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=ALL),
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
                step(*ends("c"), arrive("b", 1, 1, nodes=(2,)), rows="b:2:3", emits=(C,), to=ALL),
                last(*ends("a"), *ends("b")),
            ),
            blocks=3,
        ),
        "abort-keeps-its-rows": History(
            "A05",
            (
                step(arrive("a"), rows="a:0:1", emits=(C, NOTE), to=ALL),
                step(aborts("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(C,), to=ALL),
                last(*ends("b")),
            ),
            blocks=2,
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
        ),
        "two-deferred-names": History(
            "A09",
            (
                step(arrive("a", 2), rows="a:0:1 a:1:2", emits=(C,)),
                step(arrive("b", 1, 0, nodes=(1,)), rows="b:2:3", emits=(C, D), to=ALL),
                step(*ends("a"), goes_on("b"), rows="b:1:4", emits=(D,)),
                last(*ends("b")),
            ),
            blocks=3,
            budget=3,
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
        # --- Pages, consumers -----------------------------------------------------------------------------------
        "page-under-a-reader": History(
            "W7, A07",
            (
                step(arrive("a"), rows="a:0:1", emits=(M, NOTE), to=ALL),
                step(goes_on("a"), rows="a:1:2", emits=(M,), to=[ALL, "discard"]),
                step(goes_on("a"), rows="a:2:3", emits=(M,), to="discard"),
                last(*ends("a")),
            ),
            blocks=3,
            pages=2,
            more=faults(abandons=1, tells_copied=True),
        ),
        "waits-again": History(
            "D04, D11",
            (
                step(arrive("a"), rows="a:0:1", emits=(C,), to=["discard"]),
                step(*ends("a"), arrive("c"), rows="c:0:2", emits=(C,), to="discard", dropped=None),
                step(arrive("e"), rows="e:1:3", emits=(C,), to="discard", dropped=None),
                last(*ends("c", "e")),
            ),
            blocks=2,
            pages=2,
        ),
        "builder-lag": History(
            "W14",
            (
                step(arrive("a"), rows="a:0:1", to=["discard"]),
                step(goes_on("a"), rows="a:1:2", to=["discard"]),
                step(goes_on("a"), rows="a:2:3", to=["discard"]),
                step(goes_on("a"), rows="a:3:4", to=["discard"]),
                last(*ends("a")),
            ),
            more=MappingProxyType({"lag": 2}),
        ),
        "consumed-in-part": History(
            "A19",
            (
                step(arrive("a"), rows="a:0:1"),
                step(arrive("b", 1, 0, nodes=(1,)), goes_on("a"), rows="b:1:2 a:2:3", to=[("a",), ("b",), ("a", "b")]),
                last(*ends("a", "b")),
            ),
            blocks=3,
            more=faults(abandons=1),
        ),
        # --- Names that are not emitted, steps given up, hits with holes ------------------------------------------
        "name-not-emitted": History(
            "D02",
            (
                step(arrive("x"), rows="x:0:1", emits=(H, M)),
                step(*ends("x"), arrive("a"), rows="a:0:2", emits=(H,)),
                step(arrive("b", 1, 0, nodes=(2,)), rows="b:1:3", emits=(H, M), to=ALL),
                last(*ends("a", "b")),
            ),
            blocks=2,
        ),
        "hidden-not-emitted": History(
            "D02",
            (
                step(arrive("x"), rows="x:0:1"),
                step(*ends("x"), arrive("a"), rows="a:0:2", emits=(M,)),
                step(arrive("b", 1, 0, nodes=(2,)), rows="b:1:3", to=[ALL, "discard"]),
                last(*ends("a", "b")),
            ),
            blocks=2,
        ),
        "step-given-up": History(
            "W9, D05",
            (
                step(arrive("c"), rows="c:1:1"),
                step(*ends("c"), arrive("a"), rows="a:1:2", dropped=True),
                step(arrive("b", 1, 1), rows="b:0:3", to=[ALL, "discard"]),
                last(*ends("a", "b")),
            ),
            blocks=2,
            more=MappingProxyType({"is_honest": False}),
        ),
        "hit-with-a-hole": History(
            "D09, W15",
            (
                step(arrive("a"), rows="a:0:1"),
                step(arrive("b", 1, 2), goes_on("a"), rows="b:1:2 a:3:3", to=[("a",), ("a", "b"), "discard"]),
                step(arrive("d"), rows="d:2:4"),
                step(arrive("f", 1, 3, nodes=(3,)), rows="f:4:5", to=ALL),
                last(*ends("a", "b", "d", "f")),
            ),
            blocks=5,
            pages=4,
            more=MappingProxyType({"is_honest": False}),
        ),
        "named-blocks": History(
            "R14",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, M), computes=((0, 1),)),
                step(*ends("a"), arrive("b"), rows="b:0:2", emits=(H, M), computes=((0, 2),), dropped=None),
                step(
                    arrive("c", 1, 0, nodes=(1,), named=True),
                    arrive("d", 1, 0, nodes=(2,), named=True),
                    rows="c:1:3 d:2:4",
                    emits=(H, M),
                    to=[("c",), ("d",), "discard"],
                ),
                last(*ends("b", "c", "d")),
            ),
            blocks=3,
            more=MappingProxyType({"is_honest": False}),
        ),
        # --- Failures, resets, shutdown ---------------------------------------------------------------------------
        "failed-write": History(
            "A10",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, C), to=[ALL, "discard"]),
                step(goes_on("a"), arrive("b", 1, 0, nodes=(1,)), rows="a:1:2 b:2:3", emits=(H, C), to=[("b",), "discard"]),
                last(*ends("a", "b")),
                step(arrive("z"), rows="z:0:5", emits=(H, C), to=ALL),
                last(*ends("z")),
            ),
            blocks=3,
            pages=2,
            more=faults(failures=1),
            resume=3,
        ),
        "failed-read": History(
            "R13",
            (
                step(arrive("a"), rows="a:0:1"),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", to=[ALL, "discard"]),
                step(arrive("c"), rows="c:0:3"),
                last(*ends("b", "c")),
            ),
            blocks=2,
            more=faults(failures=1),
        ),
        "reset-behind-a-write": History(
            "A16, W10",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, C)),
                last(*ends("a")),
                step(arrive("b"), rows="b:0:2", emits=(H, C), to=ALL),
                step(arrive("c", 1, 0, nodes=(2,)), rows="c:1:3", emits=(H, C), to=ALL),
                last(*ends("b", "c")),
            ),
            blocks=2,
            pages=2,
            more=faults(resets=1),
            resume=2,
        ),
        "reset-with-a-step": History(
            "W11, A16",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, C), to=[ALL, "discard"]),
                last(*ends("a")),
            ),
            blocks=1,
            pages=2,
            more=faults(resets=1, abandons=1),
            resume=2,
        ),
        "reset-under-a-builder": History(
            "R24",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, C)),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(H, C), to=ALL),
                last(*ends("b")),
                step(arrive("z"), rows="z:0:5", emits=(H, C), to=ALL),
                last(*ends("z")),
            ),
            blocks=2,
            pages=2,
            more=faults(failures=1, abandons=1, tells_copied=True),
            resume=3,
        ),
        "shut-down": History(
            "R15",
            (
                step(arrive("a"), rows="a:0:1", emits=(H, C), to=[ALL, "discard"]),
                step(*ends("a"), arrive("b", 1, 0, nodes=(1,)), rows="b:1:2", emits=(H, C), to=[ALL, "discard"]),
                last(*ends("b")),
            ),
            blocks=2,
            pages=2,
            more=faults(shutdowns=1),
        ),
    }
)
"""Every scenario by name."""
