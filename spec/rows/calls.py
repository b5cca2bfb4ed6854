"""Calls that an engine, a builder or a device could make next: sensible ones, and some that cannot be, on purpose.

Every maker makes one call on a driver, and is free to choose among what the moment offers; none decides whether its
call is due.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tenure.core.arrays import integers
from tenure.core.config import RowConfig
from tenure.core.errors import InvariantViolation, TenureError
from tenure.core.rows.answers import Ignored
from tenure.core.rows.commands import GatherRows, ScheduleGather
from tenure.core.rows.events import ContentIdentity, Extended, LifeCycle, Replaced, RequestId, Resumed, Started, StepId
from tenure.spec.choices import Choices
from tenure.spec.rows.comparison import AGREEMENT
from tenure.spec.rows.driver import Driver
from tenure.spec.rows.emissions import POLICIES, SPOILERS, some_save
from tenure.spec.rows.engine import Plan
from tenure.spec.rows.strays import some_stray

AnyDriver: TypeAlias = Driver[Any]
Maker: TypeAlias = Callable[[AnyDriver, Choices], None]


# --- An engine ------------------------------------------------------------------------------------------------


def start(driver: AnyDriver, choices: Choices) -> None:
    """A scheduler output: requests arrive, go on, are preempted, come back, end."""
    plan = driver.world.engine.plan(choices)
    driver.start(plan.changes, plan)


def end_all(driver: AnyDriver, choices: Choices) -> None:
    """A scheduler output in which every request ends."""
    del choices
    plan = driver.world.engine.ending()
    driver.start(plan.changes, plan)


def start_badly(driver: AnyDriver, choices: Choices) -> None:
    """A scheduler output of which one part cannot be; refused with all its other parts."""
    plan = driver.world.engine.plan(choices)
    bad = some_bad_change(driver.config, _paused(driver, plan), choices)
    place = choices.pick([0, len(plan.changes)])
    changes = [*plan.changes[:place], bad, *plan.changes[place:]]
    trial = driver.world.oracle.clone()
    try:
        trial.new_step_starts(changes)
    except TenureError:
        driver.start(changes)


def _paused(driver: AnyDriver, plan: Plan) -> list[RequestId]:
    """Live requests of which a plan says nothing."""
    named: set[RequestId] = set()
    for change in plan.changes:
        named.update(change.requests if isinstance(change, Extended) else (change.request,))
    return sorted(driver.world.oracle.live - named, key=str)


def some_bad_change(config: RowConfig, paused: Sequence[RequestId], choices: Choices) -> LifeCycle:
    """Something that no scheduler output may say; with blocks of one token, a few of these are fine."""
    size = config.block_size
    table = ((0, 1),)
    identity = ContentIdentity(1)
    of_known: list[LifeCycle] = []
    if paused:
        known = choices.pick(paused)
        of_known = [
            Extended((known, known), integers([1, 1])),
            Extended((known,), integers([-1])),
            Resumed(known, 1, -size),
        ]
    return choices.pick(
        [
            *of_known,
            Started("odd", -1),
            Started("odd", 1, -size, table),
            Started("odd", 1, size + 1, table),
            Started("odd", 0, size, table),
            Started("odd", 1, size),
            Started("odd", 1, size, ((0,), (1,))),
            Started("odd", 1, 3 * size, table),
            Started("odd", 1, size, ((config.num_blocks,),)),
            Started("odd", 1, size, ((-1,),)),
            Started("odd", 1, size, table, (identity, identity)),
            Started("odd", 1, computes=((config.num_blocks, identity),)),
            Extended(("odd",), integers([1])),
            Resumed("odd", 1),
            Replaced(1, 1),
        ]
    )


def save(driver: AnyDriver, choices: Choices) -> None:
    """The save of the step that was started."""
    world = driver.world
    if world.plan is not None and world.oracle.pending is not None:
        driver.request_save(some_save(world.plan, world.oracle.pending, choices))


def save_again(driver: AnyDriver, choices: Choices) -> None:
    """The save that waits, made again as it was."""
    del choices
    if driver.world.saving is not None:
        driver.request_save(driver.world.saving.save)


def save_badly(driver: AnyDriver, choices: Choices) -> None:
    """A save of which one part cannot be."""
    world = driver.world
    if world.plan is None or world.oracle.pending is None:
        return
    plain = some_save(world.plan, world.oracle.pending, choices)
    spoiled = choices.pick(SPOILERS)(plain, choices, driver.config)
    for each in (plain, spoiled):
        # A save that is bad by itself is made as it is: which of two faults is told first is nobody's business.
        try:
            world.oracle.check_save(each.outputs, each.layout)
        except TenureError:
            driver.request_save(each)
            return


def cancel(driver: AnyDriver, choices: Choices) -> None:
    """A reservation whose publication was refused is given back."""
    del choices
    step = driver.world.oracle.pending
    if step is not None:
        driver.cancel_save(step)


def drop(driver: AnyDriver, choices: Choices) -> None:
    """The started step is given up, perhaps with slots that are none."""
    plan = driver.world.plan
    slots = [] if plan is None else [row.slot for row in plan.rows]
    driver.drop(slots + choices.often([[]], [driver.config.num_slots, -1]))


# --- Builders -------------------------------------------------------------------------------------------------


def idle_steps(driver: AnyDriver) -> list[StepId]:
    """Saved steps that no builder is at."""
    return [step for step in driver.world.oracle.unconsumed if step not in driver.world.builders]


def waiting(driver: AnyDriver) -> list[StepId]:
    """Steps whose builder waits."""
    return [step for step, builder in driver.world.builders.items() if not builder.is_copying]


def copying(driver: AnyDriver) -> list[StepId]:
    """Steps whose builder copies rows."""
    return [step for step, builder in driver.world.builders.items() if builder.is_copying]


def with_pages(driver: AnyDriver) -> list[StepId]:
    """Steps whose builder still reads the page."""
    builders = driver.world.builders
    return [step for step in copying(driver) if builders[step].page_reading is not None]


def consume(driver: AnyDriver, choices: Choices) -> None:
    """A builder asks for a step's rows: of all requests that can be served, or of any."""
    steps = idle_steps(driver)
    if not steps:
        return
    step = choices.pick(steps)
    batch = tuple(request for request, _ in driver.view.steps[step].batch)
    readable = tuple(request for request in batch if driver.world.oracle.is_readable(step, request))
    usual = [readable, readable, readable[::-1], batch, readable[1:], ()]
    driver.request_consume(step, choices.often(usual, batch[:1], (*batch, "nobody"), (*batch, *batch[:1])))


def ask_again(driver: AnyDriver, choices: Choices) -> None:
    """A builder that waits asks again."""
    steps = waiting(driver)
    if steps:
        step = choices.pick(steps)
        driver.request_consume(step, driver.world.builders[step].requests)


def copy_out(driver: AnyDriver, choices: Choices) -> None:
    """A builder has copied the page."""
    steps = with_pages(driver)
    if steps:
        driver.copy_out(choices.pick(steps))


def end_consume(driver: AnyDriver, choices: Choices) -> None:
    """A builder returns."""
    steps = copying(driver)
    if steps:
        driver.end_consume(choices.pick(steps))


def abandon(driver: AnyDriver, choices: Choices) -> None:
    """A builder raises."""
    steps = copying(driver)
    if steps:
        driver.abandon(choices.pick(steps))


def discard(driver: AnyDriver, choices: Choices) -> None:
    """A step is discarded."""
    steps = idle_steps(driver)
    if steps:
        driver.discard(choices.pick(steps))


def consume_badly(driver: AnyDriver, choices: Choices) -> None:
    """A consume of a step that cannot be consumed, or twice at a time."""
    step = choices.pick([driver.view.next_step, 0, driver.view.next_step - 1, 1, *copying(driver)])
    if step in idle_steps(driver) or step in waiting(driver):
        return
    if choices.pick([True, False]):
        driver.discard(step)
    else:
        driver.request_consume(step, ())


def time_out(driver: AnyDriver, choices: Choices) -> None:
    """Something waited too long."""
    waits = [driver.world.builders[step].waited_for for step in waiting(driver)]
    if driver.world.saving is not None:
        waits.append(driver.world.saving.waited_for)
    waits = [each for each in waits if each is not None]
    if waits:
        waited_for = choices.pick(waits)
        assert waited_for is not None
        driver.time_out(waited_for)


# --- A device -------------------------------------------------------------------------------------------------


def advance(driver: AnyDriver, choices: Choices) -> None:
    """A command begins or ends."""
    device = driver.world.device
    moves = [(number, device.begin) for number in device.can_begin] + [
        (number, device.end) for number in device.can_end
    ]
    if moves:
        number, move = choices.pick(moves)
        move(number)


def advance_copies(driver: AnyDriver, choices: Choices) -> None:
    """As `advance`, but no read begins."""
    device = driver.world.device
    gathers = {command.command for command in device.open if isinstance(command, GatherRows)}
    moves = [(number, device.begin) for number in device.can_begin] + [
        (number, device.end) for number in device.can_end
    ]
    moves = [move for move in moves if move[0] not in gathers]
    if moves:
        number, move = choices.pick(moves)
        move(number)


def answer(driver: AnyDriver, choices: Choices) -> None:
    """The machine is told what ended, or what began."""
    due = driver.world.device.due
    if due:
        driver.answer(choices.pick(due))


def answer_copies(driver: AnyDriver, choices: Choices) -> None:
    """As `answer`, but no read is said to begin."""
    device = driver.world.device
    reads = {command.command for command in device.open if isinstance(command, ScheduleGather)}
    due = [number for number in device.due if number not in reads]
    if due:
        driver.answer(choices.pick(due))


def fail(driver: AnyDriver, choices: Choices) -> None:
    """A command ends badly."""
    device = driver.world.device
    if device.can_fail:
        device.fail(choices.pick(device.can_fail))


def stray(driver: AnyDriver, choices: Choices) -> None:
    """Something that does not fit is told."""
    found = some_stray(driver.view, choices)
    if found is not None:
        event, error = found
        before = driver.view
        told = driver.tell(event, error)
        if error is None and (not isinstance(told, Ignored) or driver.view != before):
            raise InvariantViolation(AGREEMENT, f"{event} is answered {told}; expected to be ignored")


# --- The rest of a cache's life -------------------------------------------------------------------------------


def reset(driver: AnyDriver, choices: Choices) -> None:
    """A reset, granted or not."""
    del choices
    driver.reset()


def register_policy(driver: AnyDriver, choices: Choices) -> None:
    """A policy, mostly too late."""
    driver.register_policy(choices.pick(POLICIES))


def shut_down(driver: AnyDriver, choices: Choices) -> None:
    """The end, for one number in eight."""
    if choices.pick(range(8)) == 7:
        driver.shut_down()
