"""A scheduler that never was: requests with token chains, blocks with contents, and hits that are honest.

What an engine tells the row machine must be true: a hit names only blocks whose slots were computed for the hit's own
chain, by steps up to its own. This scheduler keeps, per slot, the chain that computed it last, and so knows which hits
are honest. It also makes dishonest ones, on purpose and marked, for the machine's answer does not depend on truth.
"""

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from tenure.core.arrays import integers
from tenure.core.config import RowConfig
from tenure.core.rows.events import (
    Aborted,
    BlockId,
    ContentIdentity,
    Extended,
    Finished,
    LifeCycle,
    RequestId,
    Resumed,
    Slot,
    Started,
)
from tenure.spec.choices import Choices

REQUESTS: Final[tuple[RequestId, ...]] = (1, 2, "three", 4)
CHAIN_TOKENS: Final = 16
CHAINS: Final = ("0" * CHAIN_TOKENS, "00" + "1" * (CHAIN_TOKENS - 2), "0000" + "2" * (CHAIN_TOKENS - 4))
"""Token chains, one character a token; they share a prefix."""

IDENTITIES: Final = ("never", "at starts", "at publications", "sometimes")
"""When the machine may be told what blocks hold."""

Chain: TypeAlias = str


class Running(NamedTuple):
    """One live request.

    Attributes:
        chain: its tokens, of which any number may have been computed.
        table: its blocks by position; none while it is preempted.
        computed: tokens `[0, computed)` stand in the table's slots.
    """

    chain: Chain
    table: tuple[BlockId, ...]
    computed: int

    @property
    def is_preempted(self) -> bool:
        """Whether it lost its blocks."""
        return not self.table


class PlannedRow(NamedTuple):
    """One token that a step computes: whose it is, the chain that ends with it, and where it goes."""

    request: RequestId
    chain: Chain
    slot: Slot


class PlannedHit(NamedTuple):
    """A hit of a step.

    Attributes:
        chain: the chain of the request.
        tokens: how many tokens of it were found computed.
        is_honest: whether its blocks hold that chain, as far as scheduler and identities can tell.
    """

    chain: Chain
    tokens: int
    is_honest: bool


@dataclass(slots=True)
class Plan:
    """What one start schedules.

    Attributes:
        changes: what the start says.
        rows: what the step computes, in batch order.
        hits: hit spans of arrivals.
        running: the live requests when the start was taken.
        rows_max: how many rows it may have.
        computes: what the publication of its save says of blocks, if the start did not.
        taken: blocks that it computes or hits.
    """

    changes: list[LifeCycle]
    rows: list[PlannedRow]
    hits: dict[RequestId, PlannedHit]
    running: dict[RequestId, Running]
    rows_max: int = 0
    computes: tuple[tuple[BlockId, ContentIdentity], ...] = ()
    taken: set[BlockId] = field(default_factory=set[BlockId])

    @property
    def batch(self) -> dict[RequestId, int]:
        """Tokens of each request that computes some, in batch order."""
        counts: dict[RequestId, int] = {}
        for row in self.rows:
            counts[row.request] = counts.get(row.request, 0) + 1
        return counts


def identity_of(chain: Chain) -> ContentIdentity:
    """What a block holds whose last token ends this chain."""
    return ContentIdentity(int("1" + chain, 4))


class Engine:
    """Requests and blocks of an engine whose steps all succeed.

    Attributes:
        running: the live requests.
        content: per slot the chain that computed it last.
    """

    def __init__(self, config: RowConfig, identities: str = "never") -> None:
        """Nothing runs. `identities`, one of `IDENTITIES`, is when the machine is told what blocks hold."""
        self._config = config
        self._identities = identities
        self.running: dict[RequestId, Running] = {}
        self.content: dict[Slot, Chain] = {}

    def clone(self) -> "Engine":
        """A twin that goes its own way from here."""
        twin = Engine(self._config, self._identities)
        twin.running = self.running.copy()
        twin.content = self.content.copy()
        return twin

    # --- What happened ----------------------------------------------------------------------------------------

    def take(self, plan: Plan) -> None:
        """The start was taken."""
        self.running = plan.running

    def compute(self, plan: Plan) -> None:
        """The step's tokens were computed, and it was saved or given up."""
        self.content.update({row.slot: row.chain for row in plan.rows})

    def forget(self) -> None:
        """Every request was aborted."""
        self.running = {}

    # --- What may happen next ---------------------------------------------------------------------------------

    def plan(self, choices: Choices) -> Plan:
        """Something that a scheduler may do next."""
        rows_max = choices.often([self._config.page_rows_max], self._config.num_slots)
        plan = Plan([], [], {}, self.running.copy(), rows_max)
        usual = self._identities
        when = choices.pick(IDENTITIES[:3]) if usual == "sometimes" else usual
        for request in sorted(plan.running, key=str):
            self._go_on(plan, request, choices)
        for _ in range(choices.pick([1, 1, 2, 0])):
            self._arrive(plan, choices, named=when != "never")
        if when != "never":
            self._name_blocks(plan, at_start=when == "at starts")
        self._merge_extensions(plan, choices)
        turn = choices.pick(range(len(plan.changes) or 1))
        plan.changes = plan.changes[turn:] + plan.changes[:turn]
        order = list(plan.batch)
        if len(order) > 1 and choices.pick([False, True]):
            order.reverse()
        plan.rows.sort(key=lambda row: order.index(row.request))
        return plan

    def ending(self) -> Plan:
        """Every request ends, and nothing is scheduled."""
        return Plan([Finished(request) for request in self.running], [], {}, {})

    def _go_on(self, plan: Plan, request: RequestId, choices: Choices) -> None:
        run = plan.running[request]
        kind = choices.pick(["go on", "go on", "finish", "go on", "preempt", "finish", "pause", "abort"])
        if kind in ("finish", "abort") or run.computed >= CHAIN_TOKENS - 2:
            del plan.running[request]
            plan.changes.append(Aborted(request) if kind == "abort" else Finished(request))
        elif kind == "preempt":
            plan.running[request] = Running(run.chain, (), 0)
        elif kind == "go on" and run.is_preempted:
            hit = self._honest_hit(plan, run.chain, choices)
            if (count := self._compute(plan, request, run.chain, hit, choices)) > 0:
                tokens = len(hit) * self._config.block_size
                plan.changes.append(Resumed(request, count, tokens, (plan.running[request].table,)))
        elif kind == "go on" and (count := self._compute(plan, request, run.chain, None, choices)) > 0:
            plan.changes.append(Extended((request,), integers([count])))

    def _arrive(self, plan: Plan, choices: Choices, *, named: bool) -> None:
        absent = [request for request in REQUESTS if request not in plan.running]
        if not absent:
            return
        request = choices.pick(absent)
        chain = choices.pick(CHAINS)
        is_honest = choices.pick([True, True, True, True, False])
        hit = self._honest_hit(plan, chain, choices) if is_honest else self._any_hit(choices)
        count = self._compute(plan, request, chain, hit, choices)
        if not count:
            return
        size = self._config.block_size
        expects: tuple[ContentIdentity, ...] = ()
        if hit and named and choices.pick([True, True, False]):
            expects = tuple(identity_of(chain[: size * (place + 1)]) for place in range(len(hit)))
        tokens = len(hit) * size
        table = plan.running[request].table
        plan.changes.append(Started(request, count, tokens, (table,), expects))
        if hit:
            # An identity is as good as the scheduler's word: a block that was computed otherwise lost it.
            plan.hits[request] = PlannedHit(chain, tokens, is_honest or bool(expects))

    def _after(self, plan: Plan) -> dict[Slot, Chain]:
        return self.content | {row.slot: row.chain for row in plan.rows}

    def _honest_hit(self, plan: Plan, chain: Chain, choices: Choices) -> tuple[BlockId, ...]:
        """Blocks that will hold the chain's beginning when the step was saved."""
        size, after = self._config.block_size, self._after(plan)
        hit: list[BlockId] = []
        while (len(hit) + 1) * size < CHAIN_TOKENS:
            begin = len(hit) * size
            fitting = [
                block
                for block in range(self._config.num_blocks)
                if all(after.get(block * size + offset) == chain[: begin + offset + 1] for offset in range(size))
            ]
            if not fitting or choices.pick([False, False, False, True]):
                break
            hit.append(choices.pick(fitting))
        plan.taken.update(hit)
        return tuple(hit)

    def _any_hit(self, choices: Choices) -> tuple[BlockId, ...]:
        blocks = range(self._config.num_blocks)
        count = choices.pick([1, 2])
        longest = (CHAIN_TOKENS - 2) // self._config.block_size
        return tuple(choices.pick(blocks) for _ in range(min(count, longest)))

    def _compute(
        self, plan: Plan, request: RequestId, chain: Chain, hit: tuple[BlockId, ...] | None, choices: Choices
    ) -> int:
        """Let a request compute a few tokens behind its hit, or (`hit` None) behind what it has."""
        size = self._config.block_size
        run = plan.running[request] if hit is None else Running(chain, hit, len(hit) * size)
        wanted = choices.pick([size, 1, 2 * size, size + 1])
        count = 0
        while count < wanted and run.computed < CHAIN_TOKENS and len(plan.rows) < plan.rows_max:
            if run.computed == len(run.table) * size:
                block = self._some_block(plan, request, choices)
                if block is None:
                    break
                run = run._replace(table=(*run.table, block))
            block = run.table[run.computed // size]
            plan.taken.add(block)
            slot = block * size + run.computed % size
            plan.rows.append(PlannedRow(request, chain[: run.computed + 1], slot))
            run = run._replace(computed=run.computed + 1)
            count += 1
        if count:
            plan.running[request] = run
        return count

    def _some_block(self, plan: Plan, request: RequestId, choices: Choices) -> BlockId | None:
        """A block that nobody holds, mostly; else one of a request that is preempted for it; else none."""
        held = {block for run in plan.running.values() for block in run.table}
        free = [block for block in range(self._config.num_blocks) if block not in held | plan.taken]
        victims = [
            other
            for other, run in plan.running.items()
            if other != request and run.table and not plan.taken & {*run.table}
        ]
        if free and not (victims and choices.pick(range(4)) == 3):
            return choices.pick(free)
        if not victims:
            return None
        victim = choices.pick(sorted(victims, key=str))
        block = choices.pick(plan.running[victim].table)
        plan.running[victim] = Running(plan.running[victim].chain, (), 0)
        return block

    def _name_blocks(self, plan: Plan, *, at_start: bool) -> None:
        """Say what each block holds that this step completes, in the changes or in the plan itself."""
        size, after = self._config.block_size, self._after(plan)
        completed: dict[RequestId, list[tuple[BlockId, ContentIdentity]]] = {}
        for row in plan.rows:
            block, offset = divmod(row.slot, size)
            if offset != size - 1 or len(row.chain) % size:
                continue
            whole = [after.get(block * size + place) for place in range(size)]
            if whole == [row.chain[: len(row.chain) - size + place + 1] for place in range(size)]:
                completed.setdefault(row.request, []).append((block, identity_of(row.chain)))
        if not at_start:
            plan.computes = tuple(each for computes in completed.values() for each in computes)
            return
        for place, change in enumerate(plan.changes):
            if isinstance(change, Started | Resumed | Extended):
                requests = change.requests if isinstance(change, Extended) else (change.request,)
                computes = tuple(each for request in requests for each in completed.get(request, []))
                plan.changes[place] = replace(change, computes=computes)

    @staticmethod
    def _merge_extensions(plan: Plan, choices: Choices) -> None:
        """Put all extensions into one event, mostly."""
        extended = [change for change in plan.changes if isinstance(change, Extended)]
        if len(extended) < 2 or choices.pick([False, False, True]):
            return
        others = [change for change in plan.changes if not isinstance(change, Extended)]
        merged = Extended(
            tuple(request for change in extended for request in change.requests),
            integers([count for change in extended for count in change.scheduled.tolist()]),
            tuple(each for change in extended for each in change.computes),
        )
        plan.changes = [merged, *others]
