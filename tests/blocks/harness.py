"""Drives the block machine in tests: both representations in lock-step, and every rule checked on the way."""

from collections.abc import Sequence
from typing import Any

import pytest

from tenure.core.blocks import queries
from tenure.core.blocks.machine import Transition, transition
from tenure.core.blocks.sequence import BlockIdentity, new_sequence
from tenure.core.blocks.state import BlockState
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Command,
    DecodeReservationReleased,
    DecodeReservationRequested,
    DependencyAttached,
    DependencySatisfied,
    DestinationCancelled,
    DestinationRequested,
    Event,
    Exhausted,
    LeaseFinished,
    LeaseOpened,
    LeasePreempted,
    PublishRemoved,
    PublishStored,
    Ready,
    RequestId,
    Reserved,
    Sources,
    StoreSourcesSnapshotted,
    TokenAppended,
    TokenGenerated,
    TokensComputed,
    WasPending,
)
from tenure.core.blocks.view import BlockView
from tenure.core.config import BlockConfig
from tenure.core.errors import TenureError
from tenure.spec.blocks.rule import Observation
from tenure.spec.blocks.rules import check_observation


class Machine:
    """A block machine in both representations: one state copies itself, the other keeps differences."""

    def __init__(self, capacity: int, block_size: int = 4, *, caching: bool = True, **config: Any) -> None:
        self.config = BlockConfig(capacity=capacity, block_size=block_size, prefix_caching=caching, **config)
        self.copying = BlockState.initial(self.config, copying=True)
        self.journaled = BlockState.initial(self.config, copying=False)
        self.commands: list[Command] = []

    @property
    def state(self) -> BlockState:
        """The newest state."""
        return self.journaled

    def view(self) -> BlockView:
        """The newest state as plain data."""
        return self.journaled.view()

    def tell(self, event: Event) -> Any:
        """Take one event; a refusal leaves both states equal to what they were."""
        before, old, old_copy = self.view(), self.journaled, self.copying
        try:
            step = transition(self.copying, event)
        except TenureError as refusal:
            self._check_refusal(event, refusal, before)
            raise
        same = transition(self.journaled, event)
        self._compare(step, same)
        self.copying, self.journaled = step.state, same.state
        self.commands += step.commands
        after = self.view()
        check_observation(Observation(before, event, after, step.answer, step.commands))
        # R17: also in what no view shows.
        assert before == old.view()
        assert old_copy == old
        assert after == self.view()
        return step.answer

    def refuses(self, event: Event, error: type[TenureError], match: str | None = None) -> None:
        """The event raises and changes nothing."""
        with pytest.raises(error, match=match):
            self.tell(event)

    def _check_refusal(self, event: Event, refusal: TenureError, before: BlockView) -> None:
        with pytest.raises(type(refusal)) as other:
            transition(self.journaled, event)
        assert str(refusal) == str(other.value)
        assert before == self.copying.view() == self.journaled.view()

    @staticmethod
    def _compare(step: Transition, same: Transition) -> None:
        assert step.answer == same.answer
        assert step.commands == same.commands
        assert step.state == same.state
        assert hash(step.state) == hash(same.state)

    # --- Short forms --------------------------------------------------------------------------------------------

    def open(self, request: RequestId, prompt: Sequence[int], max_output: int = 0, **options: Any) -> None:
        """Open a lease for a prompt of tokens."""
        options.setdefault("caching", self.config.prefix_caching)
        self.tell(LeaseOpened(new_sequence(request, prompt, max_output, self.config.block_size, **options)))

    def req(self, request: RequestId, hashes: Sequence[int], **options: Any) -> None:
        """Open a lease over given hashes, local hash = hash + 100, tokens 0, 1, 2, ..."""
        identities = [BlockIdentity(each, each + 100) for each in hashes]
        self.open(request, range(len(hashes) * self.config.block_size), identities=identities, **options)

    def allocate(self, request: RequestId, tokens: int, reuse: int = 0) -> int:
        """Allocate without dependencies; the number of new blocks."""
        answer = self.tell(AllocationRequested(request, tokens, reuse))
        assert isinstance(answer, Ready)
        assert answer.dependencies == ()
        return len(answer.blocks)

    def exhausted(self, request: RequestId, tokens: int, reuse: int = 0) -> None:
        """The allocation finds no capacity and changes nothing."""
        before = self.state
        assert isinstance(self.tell(AllocationRequested(request, tokens, reuse)), Exhausted)
        assert before is self.state

    def finalize(self, request: RequestId, before: int, after: int) -> None:
        """Tokens `[before, after)` are computed."""
        self.tell(TokensComputed(request, before, after))

    def cached(self, request: RequestId, hashes: Sequence[int]) -> tuple[int, ...]:
        """A lease over `hashes` that holds and has computed all its blocks; the blocks."""
        self.req(request, hashes)
        size = self.config.block_size
        self.allocate(request, len(hashes) * size)
        self.finalize(request, 0, len(hashes) * size)
        return self.blocks(request)

    def generate(self, request: RequestId, token: int | None = None) -> bool:
        """Generate a token; whether it opened a block."""
        answer = self.tell(TokenGenerated(request, token))
        assert isinstance(answer, TokenAppended)
        return answer.opened_block

    def finish(self, *requests: RequestId) -> None:
        """Finish requests."""
        for request in requests:
            self.tell(LeaseFinished(request))

    def preempt(self, request: RequestId) -> None:
        """Preempt a request."""
        self.tell(LeasePreempted(request))

    def reserve(self, blocks: int) -> int:
        """A decode reservation that must succeed."""
        return self.reserved(self.tell(DecodeReservationRequested(blocks)))

    @staticmethod
    def reserved(answer: Answer) -> int:
        """The id of a reservation that must have succeeded."""
        assert isinstance(answer, Reserved)
        return answer.reservation

    def pin(self, request: RequestId, hashes: Sequence[int]) -> int:
        """A destination over `hashes`, opened for the purpose."""
        self.req(request, hashes)
        return self.reserved(self.tell(DestinationRequested(request)))

    def release(self, reservation: int) -> None:
        """Give a decode reservation back."""
        self.tell(DecodeReservationReleased(reservation))

    def cancel(self, reservation: int) -> None:
        """Give a destination up."""
        self.tell(DestinationCancelled(reservation))

    def attach(self, request: RequestId, positions: Sequence[int], dependency: int) -> None:
        """Attach a transfer that reads computed blocks of a lease."""
        answer = self.tell(StoreSourcesSnapshotted(request, tuple(positions)))
        assert isinstance(answer, Sources)
        self.tell(DependencyAttached(request, answer.snapshot, dependency))

    def satisfy(self, dependency: int) -> bool:
        """End a transfer."""
        answer = self.tell(DependencySatisfied(dependency))
        assert isinstance(answer, WasPending)
        return answer.pending

    # --- Looking ------------------------------------------------------------------------------------------------

    def hit(self, block_hash: int) -> bool:
        """Whether a hash is visible."""
        return queries.prefix_hit(self.state, block_hash) is not None

    def is_active(self, block_hash: int) -> bool:
        """Whether a visible hash's primary copy is in use."""
        hit = queries.prefix_hit(self.state, block_hash)
        assert hit is not None
        return hit.is_active

    def blocks(self, request: RequestId) -> tuple[int, ...]:
        """The blocks a request holds."""
        return queries.block_table(self.state, request)

    def hashes(self, request: RequestId) -> tuple[int | None, ...]:
        """A request's hashes."""
        return queries.block_hashes(self.state, request)

    @property
    def active(self) -> int:
        """Active blocks."""
        return queries.num_active(self.state)

    @property
    def inactive(self) -> int:
        """Inactive blocks."""
        return queries.num_inactive(self.state)

    def take_events(self) -> list[Command]:
        """The commands since the last call."""
        taken, self.commands = self.commands, []
        return taken

    def stored(self) -> list[tuple[tuple[int, ...], int | None]]:
        """`(hashes, parent)` of the Stored events since the last call; there must be nothing else."""
        taken = self.take_events()
        assert all(isinstance(each, PublishStored) for each in taken)
        return [(each.block_hashes, each.parent_hash) for each in taken if isinstance(each, PublishStored)]

    def removed(self) -> list[int]:
        """The hashes removed since the last call; there must be nothing else."""
        taken = self.take_events()
        assert all(isinstance(each, PublishRemoved) for each in taken)
        return [each for event in taken if isinstance(event, PublishRemoved) for each in event.block_hashes]
