"""The one value that holds both machines, and what tells them."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from tenure.core.blocks import machine as block_machine
from tenure.core.blocks import values as block_values
from tenure.core.blocks.state import BlockState
from tenure.core.config import CacheConfig
from tenure.core.joined.values import (
    BlockEvent,
    BlockId,
    CacheAnswer,
    CacheCommand,
    CacheView,
    RequestId,
    Scheduled,
    StartedBatch,
    Track,
)
from tenure.core.persistent import Map
from tenure.core.rows import events
from tenure.core.rows import machine as row_machine
from tenure.core.rows.state import RowState


@dataclass(frozen=True, slots=True)
class CacheState:
    """One state of the joined cache; like those of its machines it stays valid after any number of transitions."""

    config: CacheConfig
    blocks: BlockState
    rows: RowState
    tracks: Map[RequestId, Track]
    unsaved: Map[BlockId, RequestId]
    batch: tuple[Scheduled, ...] = ()
    started: StartedBatch | None = None
    ended: tuple[RequestId, ...] = ()

    @classmethod
    def initial(cls, config: CacheConfig, *, copying: bool = False) -> Self:
        """Nothing held, nothing known; `copying` as in `JournaledState.over`."""
        blocks = BlockState.initial(config.blocks, copying=copying)
        return cls(config, blocks, RowState.initial(config.rows, copying=copying), Map(), Map())

    def view(self) -> CacheView:
        """Everything this state holds, as plain data that no later transition touches."""
        blocks = self.blocks.view()
        return CacheView(
            config=self.config,
            blocks=blocks,
            rows=self.rows.view(),
            tracks={request: self.tracks[request] for request in blocks.leases},
            batch=self.batch,
            started=self.started.batch if self.started else (),
            announced={request: was.hit for request, was in self.started.hits} if self.started else {},
            unsaved=dict(self.unsaved.items()),
            ended=self.ended,
        )


class CacheTransition(NamedTuple):
    """What an event led to: the next state, the answer to the caller, and commands for others, in order."""

    state: CacheState
    answer: CacheAnswer
    commands: tuple[CacheCommand, ...]


def tell_blocks(state: CacheState, event: BlockEvent | block_values.TokensComputed) -> CacheTransition:
    """Tell the block machine."""
    blocks, answer, commands = block_machine.transition(state.blocks, event)
    return CacheTransition(replace(state, blocks=blocks), answer, commands)


def tell_rows(state: CacheState, event: events.RowEvent) -> CacheTransition:
    """Tell the row machine."""
    rows, answer, commands = row_machine.transition(state.rows, event)
    return CacheTransition(replace(state, rows=rows), answer, commands)
