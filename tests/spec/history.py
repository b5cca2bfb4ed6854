"""Scripted histories: events told to the oracle alone, every observation judged by every rule and kept."""

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

from tenure.core.blocks.sequence import BlockIdentity, RequestSequence, new_sequence
from tenure.core.blocks.values import (
    AllocationRequested,
    Answer,
    Command,
    DependencyAttached,
    Event,
    KvEvent,
    LeaseFinished,
    LeaseOpened,
    PublishRemoved,
    PublishStored,
    Ready,
    RequestId,
    Sources,
    StoreSourcesSnapshotted,
    TokensComputed,
)
from tenure.core.blocks.view import BlockView, LeaseView
from tenure.core.config import BlockConfig
from tenure.core.errors import TenureError
from tenure.spec.blocks.oracle import BlockOracle
from tenure.spec.blocks.rule import Observation
from tenure.spec.blocks.rules import check_observation, check_refusal

A = TypeVar("A", bound=Answer)

CHAIN_OF_16 = (9143094415614847814, 9510318385840434533, 16998148715716822651, 16790386768269814709)
LOCALS_OF_16 = (9143094415614847814, 12124091508212882195, 1088361764653601668, 16024980976528976948)
"""Sequence hashes and local hashes of the tokens 0 to 15 in blocks of four."""


def config(capacity: int, **options: Any) -> BlockConfig:
    """A machine with blocks of four tokens that tells KV events."""
    settings: dict[str, Any] = {"block_size": 4, "kv_events": True, **options}
    return BlockConfig(capacity=capacity, **settings)


def named(request: RequestId, hashes: Sequence[int], **options: Any) -> RequestSequence:
    """A request whose full blocks of four tokens have these hashes, and local hashes larger by 100."""
    identities = [BlockIdentity(name, name + 100) for name in hashes]
    return new_sequence(request, range(4 * len(hashes)), 8, 4, identities=identities, **options)


def tokens(request: RequestId, prompt: Sequence[int], max_output: int = 8, **options: Any) -> RequestSequence:
    """A request of given tokens in blocks of four."""
    return new_sequence(request, prompt, max_output, 4, **options)


class History:
    """One history of the oracle."""

    def __init__(self, machine: BlockConfig) -> None:
        self.oracle = BlockOracle(machine)
        self.observations: list[Observation] = []

    @property
    def view(self) -> BlockView:
        """The newest state."""
        return self.oracle.view()

    @property
    def last(self) -> Observation:
        """The newest observation."""
        return self.observations[-1]

    @property
    def commands(self) -> tuple[Command, ...]:
        """What the newest event commanded."""
        return self.last.commands

    def lease(self, request: RequestId) -> LeaseView:
        """An open lease."""
        return self.view.leases[request]

    def tell(self, event: Event) -> Answer:
        """Tell an event and judge what it did."""
        before = self.view
        answer, commands = self.oracle.apply(event)
        self.observations.append(Observation(before, event, self.view, answer, commands))
        check_observation(self.last)
        return answer

    def ask(self, event: Event, kind: type[A]) -> A:
        """Tell an event that must be answered by a kind of answer."""
        answer = self.tell(event)
        assert isinstance(answer, kind)
        return answer

    def compute(self, sequence: RequestSequence) -> None:
        """Open a request, allocate its whole prompt without reuse, and compute it."""
        length = sequence.prompt_tokens
        self.tell(LeaseOpened(sequence))
        self.tell(AllocationRequested(sequence.request, length))
        self.tell(TokensComputed(sequence.request, 0, length))

    def leave_behind(self, sequence: RequestSequence) -> None:
        """Compute a request and finish it, so that its blocks are inactive."""
        self.compute(sequence)
        self.tell(LeaseFinished(sequence.request))

    def fence(self, request: RequestId, positions: Sequence[int], dependency: int) -> None:
        """Let a transfer read some blocks."""
        sources = self.ask(StoreSourcesSnapshotted(request, tuple(positions)), Sources)
        self.tell(DependencyAttached(request, sources.snapshot, dependency))

    def kv_events(self) -> list[KvEvent]:
        """Every KV event so far."""
        commands = [command for seen in self.observations for command in seen.commands]
        return [command for command in commands if isinstance(command, PublishRemoved | PublishStored)]


def fenced_pair() -> History:
    """Request 9 holds two fresh blocks of which transfers 1 and 2 read one each; it waits for both."""
    history = History(config(2))
    history.compute(named(1, [7, 8]))
    history.fence(1, [1], 1)
    history.fence(1, [0], 2)
    history.tell(LeaseFinished(1))
    history.tell(LeaseOpened(named(9, [20, 21, 22])))
    assert history.tell(AllocationRequested(9, 8)) == Ready((0, 1), (2, 1))
    return history


def refused(history: History, event: Event, error: type[TenureError]) -> None:
    """Tell an event that must be refused with an error, and check that nothing changed."""
    before = history.view
    with pytest.raises(error) as caught:
        history.oracle.apply(event)

    assert caught.type is error
    check_refusal(before, event, history.view)
