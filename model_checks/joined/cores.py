"""States of the joined cache, each kept once, and what each call of an engine led to, worked out once."""

import copyreg
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from tenure.core.blocks import values as block_values
from tenure.core.cache import CacheState, servable_prefix_blocks, transition
from tenure.core.config import CacheConfig, RowPolicy
from tenure.core.errors import TenureError
from tenure.core.joined.values import CacheCommand, CacheEvent, CacheView
from tenure.core.rows import events
from tenure.core.rows.answers import Waiting
from tenure.core.rows.commands import RowCommand
from tenure.model_checks.joined.antecedents import exercised_by_join
from tenure.model_checks.model import NOTHING, Broken, Marks
from tenure.model_checks.rows.antecedents import exercised, exercised_by_refusal
from tenure.model_checks.rows.cores import Core, Cores, CoreStep, crashed, renumbered
from tenure.spec.blocks.rules import broken_rules as broken_block_rules
from tenure.spec.joined.rules import (
    CacheObservation,
    broken_rules,
    broken_transition_rules,
    shareable_prefix_leaves_a_token,
)
from tenure.spec.rows.rule import RowObservation
from tenure.spec.rows.rules import broken_rules as broken_row_rules
from tenure.spec.rows.rules import broken_transition_rules as broken_row_transitions

Call: TypeAlias = CacheEvent | Callable[[CacheState], CacheEvent]
"""An event, or how to make it of the state that the event before it led to."""

PASSED_ON: Final = (
    events.SaveCancelled,
    events.ConsumeRequested,
    events.RowsCopiedOut,
    events.StepConsumed,
    events.ConsumeAbandoned,
    events.StepDiscarded,
    events.CopyBegan,
    events.CopyCompleted,
    events.ScatterCompleted,
    events.WriteFailed,
    events.GatherBegan,
    events.GatherCompleted,
    events.GatherFailed,
    events.ShutdownRequested,
)
"""Events that the row machine is told as they are, so that its own rules of transitions can judge them."""
NO_CAPACITY: Final = Waiting(events.WaitedFor())
"""What an arrival without capacity is answered here: it waits, as a call of the row machine does."""
# Sequences of requests hold compiled formats, which do not travel between processes by themselves.
copyreg.pickle(Struct, lambda each: (Struct, (each.format,)))

KV_COMMANDS: Final = (block_values.PublishStored, block_values.PublishRemoved, block_values.RecordTrace)


class JoinedCore(Core):
    """One state of the joined cache; `view` is that of its row machine."""

    def __init__(self, cache: CacheState, seen: CacheView, code: bytes) -> None:
        """Judge a state: as a whole, and each machine."""
        super().__init__(cache.rows, seen.rows, code)
        self.cache, self.seen = cache, seen
        self.broken = (*self.broken, *_of_both(seen))

    @cached_property
    def left_over(self) -> tuple[str, ...]:
        """What a cache at rest must not hold (R18)."""
        seen = self.seen
        held = {
            "leases": seen.blocks.leases,
            "reservations": seen.blocks.reservations,
            "snapshots": seen.blocks.snapshots,
            "transfers": seen.blocks.dependencies,
            "a batch": seen.batch,
            "ends to tell": seen.ended,
            "owed": seen.unsaved,
        }
        found = [f"{what}: {value}" for what, value in held.items() if value]
        view = super().left_over
        return (*view, *found)


class Tried(NamedTuple):
    """What an event led to that nobody goes on from: the answer, or why it was refused."""

    answer: object
    error: TenureError | None
    marks: Marks = NOTHING
    broken: tuple[Broken, ...] = ()


class JoinedCores(Cores):
    """All states of one search of the joined cache."""

    def __init__(self, config: CacheConfig, policy: RowPolicy, *, copying: bool = True) -> None:
        """The first state is number 0: the policy is registered, nothing else happened; `copying` as in `Cores`."""
        self._config = config
        self._tried_calls: dict[tuple[int, Hashable], Tried] = {}
        super().__init__(config.rows, policy, copying=copying)

    def _begin(self, policy: RowPolicy) -> None:
        nothing = CacheState.initial(self._config, copying=self._copying)
        first = transition(nothing, events.PolicyRegistered(policy)).state
        self.intern_cache(first)

    def packed(self, number: int) -> object:
        """A state as another process can be sent it."""
        record = self.all[number]
        assert isinstance(record, JoinedCore)
        return record.cache

    def unpacked(self, packed: Any) -> int:
        """The number of a state that another process packed."""
        return self.intern_cache(packed)

    def cache(self, number: int) -> JoinedCore:
        """A state of the joined cache."""
        record = self.all[number]
        assert isinstance(record, JoinedCore)
        return record

    def intern_cache(self, cache: CacheState) -> int:
        """The number of a state whose commands are renumbered."""
        key = _key(cache, self._key(cache.rows))
        return self._interned(key, lambda code: JoinedCore(cache, cache.view(), code))

    def call(self, core: int, calls: Sequence[Call], token: Hashable) -> CoreStep:
        """What several events, told one after the other by one caller under one lock, lead to together."""
        if self.told is not None:
            self.told += self._events(core, calls)
        key = core, token
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._called(core, calls)
        return found

    def _events(self, core: int, calls: Sequence[Call]) -> list[CacheEvent]:
        """The events that calls stand for."""
        cache, events_told = self.cache(core).cache, list[CacheEvent]()
        for call in calls:
            event = call(cache) if callable(call) else call
            events_told.append(event)
            cache = transition(cache, event).state
        return events_told

    def _made(self, core: int, event: Any) -> CoreStep:
        return self._called(core, [event])

    def tried(self, core: int, event: Any, token: Hashable) -> Tried:
        """What one event leads to that nobody goes on from.

        Whether a refusal left everything as it was is asked once for all that are made in a state, by `is_untouched`.
        """
        key = core, token
        found = self._tried_calls.get(key)
        if found is None:
            found = self._tried_calls[key] = self._tried(core, event)
        return found

    def _tried(self, core: int, event: Any) -> Tried:
        record = self.cache(core)
        try:
            after = transition(record.cache, event)
        except TenureError as error:
            marks = {f"error {type(error).__name__}", *exercised_by_refusal(record.seen.rows, event, error)}
            return Tried(None, error, frozenset(marks))
        except Exception as error:
            return Tried(None, None, NOTHING, crashed(core, event, error).broken)
        if after.state is record.cache:
            return Tried(after.answer, None)
        now = after.state.view()
        broken = _judge(CacheObservation(record.seen, event, now, after.answer, after.commands), set())
        return Tried(after.answer, None, NOTHING, (*broken, *_of_states(now)))

    def is_untouched(self, core: int) -> bool:
        """Whether a state is what it was when it was found (R15)."""
        record = self.cache(core)
        return record.cache.view() == record.seen

    def _called(self, core: int, calls: Sequence[Call]) -> CoreStep:
        self.misses += 1
        record = self.cache(core)
        cache, seen = record.cache, record.seen
        commands: list[CacheCommand] = []
        marks, broken = set[str](), list[Broken]()
        answer: Any = None
        for call in calls:
            event = call(cache) if callable(call) else call
            try:
                after = transition(cache, event)
            except TenureError as error:
                refused = [f"error {type(error).__name__}", *exercised_by_refusal(seen.rows, event, error)]  # type: ignore[arg-type]
                if not self._copying and cache.view() != seen:
                    broken.append(Broken("R15", f"{event} was refused, and changed something"))
                return CoreStep(core, None, error, (), frozenset(refused), tuple(broken), None)
            except Exception as error:
                return crashed(core, event, error)
            answer = after.answer
            broken += _nothing_left(cache, seen, event)
            marks.add(f"event {type(event).__name__}")
            now = seen if after.state is cache else after.state.view()
            broken += _judge(CacheObservation(seen, event, now, after.answer, after.commands), marks)
            if isinstance(answer, block_values.Exhausted):
                if now != seen:
                    broken.append(Broken("I13", f"{event} found no capacity, and changed something"))
                return CoreStep(core, NO_CAPACITY, None, (), frozenset(marks), tuple(broken), None)
            cache, seen = after.state, now
            commands += after.commands
        marks.update(f"command {type(each).__name__}" for each in commands)
        rows = _row_commands(commands)
        if cache is record.cache:
            return CoreStep(core, answer, None, rows, frozenset(marks), tuple(broken), None)
        state, numbers = renumbered(cache.rows, copying=self._copying)
        number = self.intern_cache(replace(cache, rows=state))
        broken += self.all[number].broken
        return CoreStep(number, answer, None, rows, frozenset(marks), tuple(broken), numbers)


def _of_both(seen: CacheView) -> list[Broken]:
    """What a state breaks of the rules of the join and of the block machine."""
    return [Broken(*each) for each in (*broken_rules(seen), *broken_block_rules(seen.blocks))]


def _of_states(seen: CacheView) -> list[Broken]:
    """What a state breaks of all rules of states."""
    return [*(Broken(*each) for each in broken_row_rules(seen.rows)), *_of_both(seen)]


def _nothing_left(cache: CacheState, seen: CacheView, event: CacheEvent) -> list[Broken]:
    """X01: what a request is told that it may share, when it asks for its first blocks."""
    lease = seen.blocks.leases.get(event.request) if isinstance(event, block_values.AllocationRequested) else None
    if lease is None or lease.copies:
        return []
    assert isinstance(event, block_values.AllocationRequested)
    found = shareable_prefix_leaves_a_token(seen, event.request, servable_prefix_blocks(cache, event.request))
    return [] if found is None else [Broken("X01", found)]


def _judge(seen: CacheObservation, marks: set[str]) -> list[Broken]:
    broken = [Broken(*each) for each in broken_transition_rules(seen)]
    marks.update(exercised_by_join(seen))
    if isinstance(seen.event, PASSED_ON):
        answer: Any = seen.answer
        rows = RowObservation(seen.before.rows, seen.event, seen.after.rows, answer, _row_commands(seen.commands))
        broken += [Broken(*each) for each in broken_row_transitions(rows)]
        marks.update(exercised(rows))
    return broken


def _row_commands(commands: Iterable[CacheCommand]) -> tuple[RowCommand, ...]:
    return tuple(each for each in commands if not isinstance(each, KV_COMMANDS))


def _key(cache: CacheState, rows: Hashable) -> Hashable:
    started = None
    if cache.started is not None:
        started = cache.started.batch, cache.started.slots.tobytes(), cache.started.hits
    return (
        cache.blocks.key(),
        rows,
        cache.tracks.items(),
        cache.unsaved.items(),
        cache.batch,
        started,
        cache.ended,
    )
