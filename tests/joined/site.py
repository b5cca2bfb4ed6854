"""A joined cache with a device of dicts, and requests whose rows say which tokens produced them.

A row of position p is `(name, group, tokens up to p)`. So whatever a materialize returns can be held against the
request's own chain: a row of another chain, another group or another position is seen at once.
"""

from collections.abc import Sequence
from typing import Any

from tenure.core.blocks.hashing import IdentityKeys
from tenure.core.blocks.sequence import BlockIdentity, new_sequence
from tenure.core.blocks.values import (
    AllocationRequested,
    LeaseOpened,
    PublishRemoved,
    PublishStored,
    Ready,
    RecordTrace,
    TokenGenerated,
)
from tenure.core.cache import CacheState, servable_prefix_blocks, transition
from tenure.core.config import BlockConfig, CacheConfig, RowConfig, RowPolicy
from tenure.core.errors import InvariantViolation, TenureError
from tenure.core.joined.values import (
    BatchDropped,
    BatchSaveRequested,
    BatchStarted,
    CacheAnswer,
    CacheEvent,
    CacheView,
    TokensScheduled,
)
from tenure.core.rows.answers import ConsumePlan, Waiting
from tenure.core.rows.commands import CommandId, FreezeRows, RowCommand
from tenure.core.rows.events import (
    ConsumeRequested,
    PolicyRegistered,
    RequestId,
    RowsCopiedOut,
    StepConsumed,
)
from tenure.core.rows.names import HIDDEN, Output
from tenure.spec.blocks.rules import check_view
from tenure.spec.joined.rules import CacheObservation, check_observation
from tenure.spec.rows.comparison import assemble, by_name, places_of
from tenure.spec.rows.interpreter import Interpreter
from tenure.spec.rows.reference import Emitted
from tenure.spec.rows.rules import check_view as check_row_view
from tests.pairs import told_twice

NAMES = (HIDDEN, "m", "c")
POLICY = RowPolicy(immediate=frozenset({"m"}), deferred=frozenset({"c"}), infer=False)
KV_COMMANDS = (PublishStored, PublishRemoved, RecordTrace)


class Site:
    """One joined cache, one device, and the tokens of every request."""

    def __init__(
        self,
        visibility: str = "computed",
        num_blocks: int = 6,
        block_size: int = 2,
        pages: int = 3,
        budget: int = 10**6,
    ) -> None:
        self.config = CacheConfig(
            blocks=BlockConfig(capacity=num_blocks, block_size=block_size, kv_events=True),
            rows=RowConfig(
                num_blocks=num_blocks, block_size=block_size, page_rows_max=64, pages=pages, budget_bytes=budget
            ),
            visibility=visibility,  # type: ignore[arg-type]
        )
        self.states = (CacheState.initial(self.config), CacheState.initial(self.config, copying=True))
        self.view: CacheView = self.states[0].view()
        self.device = Interpreter(self.config.rows.num_slots)
        self.commands: dict[CommandId, Any] = {}
        self.tokens: dict[RequestId, list[int]] = {}
        self.groups: dict[RequestId, str | None] = {}
        self.outputs: dict[int, tuple[Emitted, ...]] = {}
        # Per step and request what a materialize must return: positions [first, stop) of the request's chain.
        self.expected: dict[int, dict[RequestId, tuple[str | None, tuple[int, ...], int, int]]] = {}
        self.tell(PolicyRegistered(POLICY))

    @property
    def state(self) -> CacheState:
        """The newest state."""
        return self.states[0]

    def tell(self, event: CacheEvent, live: dict[str, Any] | None = None) -> CacheAnswer:
        """One event, told to both representations of the state; a refusal changes nothing."""
        before = self.view
        try:
            first, second = told_twice(transition, *self.states, event)
        except TenureError:
            assert before == self.state.view()
            raise
        self.states = (first.state, second.state)
        self.view = first.state.view()
        assert first.state == second.state
        check_view(self.view.blocks)
        check_row_view(self.view.rows)
        check_observation(CacheObservation(before, event, self.view, first.answer, first.commands))
        rows: list[RowCommand] = [command for command in first.commands if not isinstance(command, KV_COMMANDS)]
        self.commands.update({command.command: command for command in rows})
        self.device.issue(rows, live)
        return first.answer

    # --- Requests ---------------------------------------------------------------------------------------------

    def open(
        self,
        request: RequestId,
        prompt: Sequence[int],
        group: str | None = None,
        output: int = 8,
        hashes: Sequence[int] | None = None,
    ) -> None:
        """A request arrives; `hashes` replace those of its whole blocks."""
        identities = None
        size = self.config.blocks.block_size
        if hashes is not None:
            identities = [BlockIdentity(each, None) for each in hashes]
            identities += [BlockIdentity(None, None)] * (len(prompt) % size > 0)
        keys = IdentityKeys(isolation_group=group)
        sequence = new_sequence(request, list(prompt), output, size, keys=keys, identities=identities)
        self.tell(LeaseOpened(sequence))
        self.tokens[request], self.groups[request] = list(prompt), group

    def allocate(self, request: RequestId, reuse: int | None = None) -> bool:
        """Capacity for all known tokens, sharing what may be shared; whether there was any."""
        if reuse is None:
            held = self.view.blocks.leases[request].copies
            reuse = 0 if held else servable_prefix_blocks(self.state, request)
        answer = self.tell(AllocationRequested(request, len(self.tokens[request]), reuse))
        return isinstance(answer, Ready)

    def arrive(
        self,
        request: RequestId,
        prompt: Sequence[int],
        group: str | None = None,
        hashes: Sequence[int] | None = None,
    ) -> bool:
        """A request arrives and asks for capacity; whether there was any."""
        self.open(request, prompt, group, hashes=hashes)
        return self.allocate(request)

    def generate(self, request: RequestId, token: int) -> None:
        """The next output token."""
        self.tell(TokenGenerated(request, token))
        self.tokens[request].append(token)

    # --- Steps ------------------------------------------------------------------------------------------------

    def schedule(self, request: RequestId, tokens: int | None = None) -> None:
        """Put tokens into the next step; all that are left, if not said otherwise."""
        left = len(self.tokens[request]) - self.view.tracks[request].computed
        self.tell(TokensScheduled(request, left if tokens is None else tokens))

    def start(self) -> None:
        """Start the step of the batch."""
        self.tell(BatchStarted())

    def request_save(self) -> CacheAnswer:
        """Ask for the save of the started step."""
        chains = [
            (self.groups[each.request], tuple(self.tokens[each.request][: position + 1]))
            for each in self.view.started
            for position in range(each.before, each.after)
        ]
        outputs = tuple(
            Emitted(Output(name, (len(chains), 1), "float32"), [(name, *chain) for chain in chains]) for name in NAMES
        )
        answer = self.tell(
            BatchSaveRequested(tuple(each.output for each in outputs)),
            {each.output.name: each.content for each in outputs},
        )
        pending = self.view.rows.pending
        if pending is not None and not isinstance(answer, Waiting):
            self.outputs[pending] = outputs
        return answer

    def publish(self) -> int:
        """Publish the reserved save."""
        event: Any = self.device.tell(self.freeze())
        hits = {request: len(slots) for request, slots in self.view.rows.steps[event.step].hits}
        self.expected[event.step] = {
            each.request: (
                self.groups[each.request],
                tuple(self.tokens[each.request]),
                each.before - hits.get(each.request, 0),
                each.after,
            )
            for each in self.view.started
        }
        self.tell(event)
        return int(event.step)

    def freeze(self) -> CommandId:
        """The freeze of the reserved save; one that a reset forgot may still wait to be answered."""
        pending = self.view.rows.pending
        return next(
            number
            for number in self.device.due
            if isinstance(command := self.commands[number], FreezeRows) and command.step == pending
        )

    def save(self) -> int:
        """Save the started step, letting the device run whatever the save waits for."""
        while isinstance(self.request_save(), Waiting):
            assert self.run_one() or self.run_one(), "a save waits for nothing that will come"
        return self.publish()

    def step(self, *requests: RequestId) -> int:
        """One step that computes everything these requests have left."""
        for request in requests:
            self.schedule(request)
        self.start()
        return self.save()

    def drop(self) -> None:
        """Give the started step up."""
        self.tell(BatchDropped())

    # --- The device and its consumers -------------------------------------------------------------------------

    def run_one(self, choice: int = 0, passing_over: tuple[type[RowCommand], ...] = ()) -> bool:
        """Let the device do one of the things that it may do; whether there was any."""
        device = self.device
        due = [number for number in device.due if not isinstance(self.commands[number], (FreezeRows, *passing_over))]
        moves: list[tuple[str, CommandId]] = [
            *(("tell", number) for number in due),
            *(("end", number) for number in device.can_end),
            *(("begin", number) for number in device.can_begin),
        ]
        if not moves:
            return False
        act, number = moves[choice % len(moves)]
        if act == "tell":
            self.tell(device.tell(number))
        else:
            getattr(device, act)(number)
        return True

    def drain(self) -> None:
        """Let the device do everything."""
        while self.run_one():
            pass

    def materialize(self, step: int, *requests: RequestId, wait: bool = True) -> bool:
        """Consume a step and hold its rows against the chains; whether it did not have to wait."""
        answer = self.tell(ConsumeRequested(step, requests))
        while isinstance(answer, Waiting) and wait and self.run_one():
            answer = self.tell(ConsumeRequested(step, requests))
        if isinstance(answer, Waiting):
            return False
        assert isinstance(answer, ConsumePlan)
        page, hits = places_of(answer)
        rows = by_name(answer, self.device.end_reading(self.device.begin_reading(page, "a builder")))
        hit_rows = self.device.end_reading(self.device.begin_reading(hits, "a builder"))
        self.tell(RowsCopiedOut(step))
        found = assemble(answer, self.outputs[step], rows, hit_rows)
        self.tell(StepConsumed(step))
        for hit in answer.hits:
            self.device.take(hit.read)
        for request in requests:
            group, tokens, first, stop = self.expected[step][request]
            for name in NAMES:
                expected = [(name, group, tokens[: position + 1]) for position in range(first, stop)]
                per_request = found.hidden_states if name == HIDDEN else found.mm_outputs[name]
                assert per_request is not None
                if expected != per_request[request]:
                    raise InvariantViolation(
                        "X01", f"{name} of {request!r} in step {step}: {per_request[request]}, expected {expected}"
                    )
        return True
