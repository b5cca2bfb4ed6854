"""A free engine: every legal scheduler output within small bounds, one step at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from tenure.core.rows.names import HIDDEN
from tenure.model_checks.rows.plans import Change, EngineState, Option, StepPlan, Token

Emits: TypeAlias = tuple[str, ...]


class Live(NamedTuple):
    """A live request: its blocks by position (none while it is preempted), and tokens computed."""

    table: tuple[int, ...]
    computed: int


class At(NamedTuple):
    """Where a free engine stands.

    Attributes:
        steps: steps with tokens that it may still start.
        arrivals: how often each request may still arrive.
        live: each request, if it is live.
        content: per slot the node whose rows stand there when the last step was saved; 0 for nobody's.
    """

    steps: int
    arrivals: tuple[int, ...]
    live: tuple[Live | None, ...]
    content: tuple[int, ...]


class Free:
    """A program in which each request does, in each step, anything that it may.

    A request arrives with a hit on as much of its chain as some slots hold, or with none; goes on by one block; pauses;
    is preempted and comes back; finishes; is aborted. Fresh blocks are any that nobody holds, of those never used the
    first. When no step is left, what is live finishes.
    """

    def __init__(
        self,
        chains: Mapping[str, tuple[int, ...]],
        num_blocks: int,
        *,
        block_size: int = 1,
        steps: int = 2,
        arrivals: int = 1,
        emits: Sequence[Emits] = ((HIDDEN,),),
        kinds: Sequence[str] = ("finish",),
        consumers: tuple[str | tuple[str, ...], ...] | None = None,
        discards: bool = True,
        may_drop: bool = False,
        is_named: bool = False,
    ) -> None:
        """Bound the engine.

        Args:
            chains: per request the nodes of its tokens.
            num_blocks: blocks of the cache.
            block_size: tokens a block.
            steps: steps with tokens.
            arrivals: how often each request may arrive.
            emits: the names that a step may emit, one of these each.
            kinds: what else may happen to a live request: "finish", "abort", "preempt", "pause".
            consumers: what may be done with each step; None: materialized as a whole, or (`discards`) discarded.
            discards: whether steps may be discarded.
            may_drop: a step may be given up.
            is_named: starts and hits say what blocks hold.
        """
        self._names = tuple(chains)
        self._chains = tuple(chains.values())
        self._blocks, self._size = num_blocks, block_size
        self._first = At(steps, (arrivals,) * len(chains), (None,) * len(chains), (0,) * num_blocks * block_size)
        self._emits, self._kinds = tuple(emits), tuple(kinds)
        self._discards = discards
        self._consumers, self._may_drop, self._is_named = consumers, may_drop, is_named
        self._known: dict[EngineState, tuple[Option, ...]] = {}

    def first(self) -> EngineState:
        """Nobody is there."""
        return self._first

    def forget(self, state: EngineState) -> EngineState:
        """Nobody is live, and no slot holds anything."""
        at = At(*state)  # type: ignore[arg-type]
        return at._replace(live=(None,) * len(at.live), content=(0,) * len(at.content))

    def lose(self, state: EngineState, plan: StepPlan) -> EngineState:
        """What the step computed has no rows."""
        at = At(*state)  # type: ignore[arg-type]
        lost = {row.slot for row in plan.rows}
        return at._replace(content=tuple(0 if slot in lost else node for slot, node in enumerate(at.content)))

    def options(self, state: EngineState) -> tuple[Option, ...]:
        """Everything that may be started next; each found once. Where nothing may, what is live finishes."""
        found = self._known.get(state)
        if found is None:
            at = At(*state)  # type: ignore[arg-type]
            found = tuple(dict.fromkeys(self._found(at))) or tuple(self._ending(at))
            self._known[state] = found
        return found

    def _ending(self, at: At) -> Iterator[Option]:
        changes = tuple(Change("finish", name) for name, live in zip(self._names, at.live, strict=True) if live)
        if changes:
            yield Option(StepPlan(changes), at._replace(live=(None,) * len(at.live), arrivals=(0,) * len(at.live)))

    def _found(self, at: At) -> Iterator[Option]:
        if not at.steps:
            return
        for choice in product(*(self._choices(at, place) for place in range(len(self._names)))):
            for built in self._built(at, choice):
                if not built.changes:
                    continue
                if not built.rows:
                    yield Option(StepPlan(tuple(built.changes)), built.after(at, at.steps))
                    continue
                for emits in self._emits:
                    yield Option(self._plan(built, emits), built.after(at, at.steps - 1))

    def _plan(self, built: "_Built", emits: Emits) -> StepPlan:
        batch = tuple(dict.fromkeys(row.request for row in built.rows))
        usual: tuple[str | tuple[str, ...], ...] = ("discard", batch) if self._discards else (batch,)
        consumers = usual if self._consumers is None else self._consumers
        computes: tuple[tuple[int, int], ...] = ()
        if self._is_named:
            ends = [row for row in built.rows if row.slot % self._size == self._size - 1]
            computes = tuple((row.slot // self._size, row.node) for row in ends)
        dropped = None if self._may_drop else False
        return StepPlan(tuple(built.changes), tuple(built.rows), emits, computes, consumers, dropped)

    def _choices(self, at: At, place: int) -> list[str]:
        """What may happen to a request."""
        live = at.live[place]
        if live is None:
            return ["", "arrive", "arrive with a hit"] if at.arrivals[place] else [""]
        kinds = [kind for kind in self._kinds if kind != "pause" and not (kind == "preempt" and not live.table)]
        can_go = live.computed < len(self._chains[place])
        return [*(["go on"] if can_go else [""]), *(["pause"] if "pause" in self._kinds and can_go else []), *kinds]

    def _built(self, at: At, choice: Sequence[str]) -> list["_Built"]:
        """Every way of finding blocks for one choice: ends first, since what they held is free."""
        ways = [_Built([], [], list(at.live), list(at.arrivals), list(at.content))]
        order = sorted(range(len(choice)), key=lambda place: choice[place] not in ("finish", "abort", "preempt"))
        for place in order:
            ways = [way for each in ways for way in self._acted(each, place, choice[place])]
        return ways

    def _acted(self, way: "_Built", place: int, kind: str) -> Iterator["_Built"]:
        name, live = self._names[place], way.live[place]
        if kind in ("", "pause"):
            yield way
        elif kind == "preempt":
            yield way.but(place, Live((), 0))
        elif kind in ("finish", "abort"):
            yield way.but(place, None, Change(kind, name))
        elif kind == "go on":
            assert live is not None
            if live.table:
                yield from self._computed(way, place, live, lambda count: Change("go on", name, count))
            else:
                yield from self._computed(way, place, live, lambda count: Change("resume", name, count))
        else:
            hit = self._hit(way, place) if kind == "arrive with a hit" else ()
            if kind == "arrive with a hit" and not hit:
                return
            nodes = self._chains[place][: len(hit) * self._size]
            way = way.arrived(place)
            yield from self._computed(
                way,
                place,
                Live(hit, len(nodes)),
                lambda count: Change("start", name, count, hit, nodes, self._is_named and bool(hit)),
            )

    def _hit(self, way: "_Built", place: int) -> tuple[int, ...]:
        """Blocks that will hold the beginning of a chain when the step was saved, one token short of all of it."""
        chain, size, hit = self._chains[place], self._size, list[int]()
        while (len(hit) + 1) * size < len(chain):
            wanted = chain[len(hit) * size : (len(hit) + 1) * size]
            blocks = [b for b in range(self._blocks) if tuple(way.content[b * size : (b + 1) * size]) == wanted]
            if not blocks:
                break
            hit.append(blocks[0])
        way.taken.update(hit)
        return tuple(hit)

    def _computed(self, way: "_Built", place: int, live: Live, change: Callable[[int], Change]) -> Iterator["_Built"]:
        """Let a request compute up to the end of a block."""
        chain, size = self._chains[place], self._size
        needs_block = live.computed == len(live.table) * size
        for block in self._free(way) if needs_block else [live.table[-1]]:
            table = (*live.table, block) if needs_block else live.table
            stop = min(len(chain), len(table) * size)
            rows = [
                Token(self._names[place], table[at // size] * size + at % size, chain[at])
                for at in range(live.computed, stop)
            ]
            if rows:
                yield way.but(place, Live(table, stop), change(len(rows)), rows)

    def _free(self, way: "_Built") -> list[int]:
        """Blocks that nobody holds: those used before, and the first that never was."""
        held = {block for live in way.live if live is not None for block in live.table} | way.taken
        size = self._size
        free = [block for block in range(self._blocks) if block not in held]
        used = [block for block in free if any(way.content[block * size : (block + 1) * size])]
        return sorted({*used, *[block for block in free if block not in used][:1]})


class _Built:
    """A scheduler output in the making."""

    def __init__(
        self,
        changes: list[Change],
        rows: list[Token],
        live: list[Live | None],
        arrivals: list[int],
        content: list[int],
        taken: set[int] | None = None,
    ) -> None:
        self.changes, self.rows, self.live = changes, rows, live
        self.arrivals, self.content, self.taken = arrivals, content, set(taken or ())

    def but(self, place: int, live: Live | None, change: Change | None = None, rows: Sequence[Token] = ()) -> "_Built":
        """The same with one request changed."""
        twin = self._twin()
        twin.live[place] = live
        twin.changes += [change] if change else []
        for row in rows:
            twin.rows.append(row)
            twin.content[row.slot] = row.node
        return twin

    def arrived(self, place: int) -> "_Built":
        """The same with one arrival less."""
        twin = self._twin()
        twin.arrivals[place] -= 1
        return twin

    def _twin(self) -> "_Built":
        return _Built([*self.changes], [*self.rows], [*self.live], [*self.arrivals], [*self.content], self.taken)

    def after(self, at: At, steps: int) -> At:
        """Where the engine stands then."""
        del at
        return At(steps, tuple(self.arrivals), tuple(self.live), tuple(self.content))
