"""What made-up forward passes emit: rows that say which tokens made them, leftovers, and outputs that cannot be."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from tenure.core.arrays import integers
from tenure.core.config import RowConfig, RowPolicy
from tenure.core.rows.events import StepId, WriteLayout
from tenure.core.rows.names import HIDDEN, NameId, Output
from tenure.spec.choices import Choices
from tenure.spec.rows.engine import Chain, Plan
from tenure.spec.rows.reference_values import Emitted

POLICIES: Final = (
    RowPolicy(immediate=frozenset({"a"}), deferred=frozenset({"c", "d"}), leftovers=frozenset({"note"})),
    RowPolicy(deferred=frozenset({"c", "d"})),
    RowPolicy(hidden=False, immediate=frozenset({"a"}), deferred=frozenset({"c"}), infer=False),
    RowPolicy(immediate=frozenset({"a", "m"}), infer=False),
)
"""What walks are run with; names that none declares are inferred, where that is allowed."""

ROWS: Final = {
    HIDDEN: ((2,), "float32"),
    "a": ((), "int32"),
    "m": ((2,), "float16"),
    "c": ((), "uint8"),
    "d": ((1,), "int64"),
}
"""Names that emit a row a token: shape and dtype of one."""


class Mark(NamedTuple):
    """A row: which name, which step, and the chain whose last token it belongs to."""

    name: NameId
    step: StepId
    chain: Chain


class Save(NamedTuple):
    """The arguments of one save."""

    outputs: tuple[Emitted, ...]
    layout: WriteLayout


Spoiler: TypeAlias = Callable[[Save, Choices, RowConfig], Save]


def some_save(plan: Plan, step: StepId, choices: Choices) -> Save:
    """What a step that went as planned saves."""
    batch = plan.batch
    padded = choices.pick([None, len(plan.rows), len(plan.rows) + 2])
    requests = list(batch)
    idle = [request for request in plan.running if request not in batch]
    if idle and choices.pick(range(10)) == 9:
        requests.append(choices.pick(sorted(idle, key=str)))
    layout = WriteLayout(
        tuple(requests),
        integers([batch.get(request, 0) for request in requests]),
        integers([row.slot for row in plan.rows]),
        padded,
    )
    chains = [row.chain for row in plan.rows]
    outputs = [
        _tensor(name, step, chains, padded if choices.pick([False, True]) else None)
        for name in ROWS
        if choices.pick([True, True, True, False] if name == HIDDEN else [True, False])
    ]
    if choices.pick([False, True]):
        outputs.append(Emitted(Output("note"), [("note", step, request) for request in requests]))
    if choices.pick([False, False, True]):
        outputs.append(Emitted(Output("ref", (5, 2), "float32"), [("ref", step, row) for row in range(5)]))
    if choices.pick([False, False, False, True]):
        outputs = [each for each in outputs if each.output.name != "m"]
        outputs.append(Emitted(Output("m"), {"step": step}))
    if len(outputs) > 1 and choices.pick([False, False, True]):
        outputs.reverse()
    return Save(tuple(outputs), layout)


def _tensor(name: NameId, step: StepId, chains: Sequence[Chain], padded: int | None) -> Emitted:
    row_shape, dtype = ROWS[name]
    rows: list[object] = [Mark(name, step, chain) for chain in chains]
    rows += [("padding", name)] * ((padded or 0) - len(rows))
    return Emitted(Output(name, (len(rows), *row_shape), dtype), rows)


# --- Saves that cannot be -------------------------------------------------------------------------------------


def _with_slots(save: Save, slots: Sequence[int]) -> Save:
    return save._replace(layout=replace(save.layout, slots=integers(slots)))


def _with_batch(save: Save, batch: Sequence[tuple[int | str, int]]) -> Save:
    requests = tuple(request for request, _ in batch)
    counts = integers([count for _, count in batch])
    return save._replace(layout=replace(save.layout, requests=requests, counts=counts))


def _with_output(save: Save, choices: Choices, change: Callable[[Output], Output]) -> Save:
    """Change what one of the outputs says of itself."""
    if not save.outputs:
        return save
    place = choices.pick(range(len(save.outputs)))
    changed = save.outputs[place]._replace(output=change(save.outputs[place].output))
    return save._replace(outputs=(*save.outputs[:place], changed, *save.outputs[place + 1 :]))


def _batch(save: Save) -> list[tuple[int | str, int]]:
    return list(zip(save.layout.requests, save.layout.counts.tolist(), strict=True))


def spoil_slots(save: Save, choices: Choices, config: RowConfig) -> Save:
    """Too many slots, too few, one twice, or one outside the pool."""
    slots: list[int] = save.layout.slots.tolist()
    return _with_slots(
        save,
        choices.pick(
            [
                [*slots, slots[0]],
                slots[1:],
                [*slots[:-1], slots[0]],
                [*slots[:-1], config.num_slots],
                [-1, *slots[1:]],
            ]
        ),
    )


def spoil_batch(save: Save, choices: Choices, config: RowConfig) -> Save:
    """A batch that was not scheduled: a request twice, missing, unknown, or with other rows than scheduled."""
    del config
    batch = _batch(save)
    (first, count), (last, more) = batch[0], batch[-1]
    return _with_batch(
        save,
        choices.pick(
            [
                [*batch, (first, 0)],
                [(first, -1), *batch[1:], ("nobody", count + 1)],
                batch[1:],
                [*batch, ("nobody", 0)],
                [(first, count + 1), *batch[1:-1], (last, more - 1)] if more and batch[1:] else [(first, count + 1)],
                [("nobody", count), *batch[1:]],
            ]
        ),
    )


def spoil_padding(save: Save, choices: Choices, config: RowConfig) -> Save:
    """Fewer padded rows than tokens."""
    del config
    tokens = len(save.layout.slots)
    return save._replace(layout=replace(save.layout, padded=choices.pick([tokens - 1, 0, -1])))


def spoil_output(save: Save, choices: Choices, config: RowConfig) -> Save:
    """An output that contradicts itself, or what its name is known to be."""
    del config
    shapes: list[tuple[int, ...] | None] = [(1, 2), (), (7,), (len(save.layout.slots),), None]
    changes: list[Callable[[Output], Output]] = [
        lambda output: replace(output, shape=choices.pick(shapes)),
        lambda output: replace(output, dtype=choices.pick(["float64", "bool", None])),
        lambda output: replace(output, shape=None if output.shape is None else (*output.shape, 3)),
        lambda output: replace(output, name=""),
        lambda output: replace(output, name=save.outputs[0].output.name),
    ]
    return _with_output(save, choices, choices.pick(changes))


SPOILERS: Final[tuple[Spoiler, ...]] = (spoil_output, spoil_slots, spoil_batch, spoil_padding)
