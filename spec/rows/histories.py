"""Which call is made next in a history of the row machine that is made of numbers.

A history is a row of numbers, which a random generator, a fuzzer or a shrinking test library can provide. Most calls
are what an engine, a builder or a device would do; some cannot be, on purpose, and must be refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tenure.spec.choices import Choices
from tenure.spec.rows import calls
from tenure.spec.rows.calls import AnyDriver, Maker


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of call: how often it is wanted, and when it can do something."""

    maker: Maker
    weight: int
    can: Callable[[AnyDriver], object]


def _is_pending(driver: AnyDriver) -> bool:
    return driver.world.oracle.pending is not None and not _is_reserved(driver)


def _is_reserved(driver: AnyDriver) -> bool:
    return driver.world.saving is not None and driver.world.saving.waited_for is None


def _has_failed(driver: AnyDriver) -> bool:
    return driver.world.oracle.has_failed


def _is_too_large(driver: AnyDriver) -> bool:
    plan = driver.world.plan
    return plan is not None and len(plan.rows) > driver.config.page_rows_max


def _waits(driver: AnyDriver) -> bool:
    saving = driver.world.saving
    return bool(calls.waiting(driver)) or (saving is not None and saving.waited_for is not None)


KINDS: Final[tuple[Kind, ...]] = (
    Kind(calls.start, 40, lambda driver: driver.world.oracle.pending is None),
    Kind(calls.save, 40, lambda driver: _is_pending(driver) and driver.world.saving is None),
    Kind(calls.save_again, 3, lambda driver: _is_pending(driver) and driver.world.saving is not None),
    Kind(calls.advance, 60, lambda driver: driver.world.device.can_begin or driver.world.device.can_end),
    Kind(calls.answer, 60, lambda driver: driver.world.device.due),
    Kind(calls.consume, 15, calls.idle_steps),
    Kind(calls.ask_again, 3, calls.waiting),
    Kind(calls.copy_out, 10, calls.with_pages),
    Kind(calls.end_consume, 15, calls.copying),
    Kind(calls.abandon, 2, calls.copying),
    Kind(calls.discard, 2, calls.idle_steps),
    Kind(calls.start_badly, 3, lambda driver: driver.world.oracle.pending is None),
    Kind(calls.end_all, 2, lambda driver: driver.world.oracle.pending is None),
    Kind(calls.drop, 1, _is_pending),
    Kind(calls.drop, 40, lambda driver: _is_pending(driver) and _is_too_large(driver)),
    Kind(calls.time_out, 1, _waits),
    Kind(calls.fail, 4, lambda driver: _is_reserved(driver) and driver.world.device.can_fail),
    Kind(calls.save_badly, 4, lambda driver: _is_pending(driver) and driver.world.saving is None),
    Kind(calls.cancel, 60, lambda driver: driver.world.saving is not None and driver.world.saving.must_cancel),
    Kind(calls.reset, 15, _has_failed),
    Kind(calls.reset, 4, lambda driver: driver.view.next_claim > driver.view.floor and not driver.view.live),
)
"""What happens all the time. The weights of what can happen together add up to less than a byte can tell apart."""

RARE: Final[tuple[Maker, ...]] = (
    calls.consume_badly,
    calls.start_badly,
    calls.save_badly,
    calls.stray,
    calls.start_badly,
    calls.stray,
    calls.fail,
    calls.save,
    calls.start,
    calls.drop,
    calls.fail,
    calls.reset,
    calls.register_policy,
    calls.shut_down,
)
"""What happens now and then, whether it can or not."""


@dataclass(frozen=True, slots=True)
class Mood:
    """A spell in which somebody is slow: kinds that do not happen, and what happens in their place."""

    asleep: frozenset[Maker] = frozenset()
    instead: tuple[tuple[Maker, Maker], ...] = ()


READS_LATE: Final = Mood(instead=((calls.advance, calls.advance_copies), (calls.answer, calls.answer_copies)))

MOODS: Final[tuple[Mood, ...]] = (
    Mood(),
    READS_LATE,
    Mood(frozenset({calls.consume, calls.ask_again, calls.copy_out, calls.end_consume, calls.discard})),
    Mood(),
    Mood(frozenset({calls.advance, calls.answer})),
    Mood(frozenset({calls.copy_out, calls.end_consume, calls.abandon})),
    READS_LATE,
    Mood(frozenset({calls.start, calls.end_all})),
    READS_LATE,
)
"""All awake; reads late; builders late; devices late; builders at it for long; the engine idle."""


BUSY: Final = 15
"""The weight below which nothing happens that is worth staying in a mood for."""


def next_call(driver: AnyDriver, choices: Choices, mood: Mood) -> None:
    """Make the next call, whichever it is."""
    if choices.pick(range(40)) == 39:
        choices.pick(RARE)(driver, choices)
        return
    possible = [kind for kind in KINDS if kind.maker not in mood.asleep and kind.can(driver)]
    if sum(kind.weight for kind in possible) < BUSY:
        possible = [kind for kind in KINDS if kind.can(driver)]
    makers = [kind.maker for kind in possible for _ in range(kind.weight)]
    if makers:
        maker = choices.pick(makers)
        dict(mood.instead).get(maker, maker)(driver, choices)
