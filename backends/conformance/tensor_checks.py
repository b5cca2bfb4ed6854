"""Duties 5 and 6: tensors as engines have them, strided or of any dtype, and more memory than there is."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from tenure.backends.conformance.registry import check
from tenure.backends.conformance.rig import ROWS, Held, Rig
from tenure.backends.device import Lane, Memory, Rows, Tensor
from tenure.core.errors import ForeignTensorError, OperationFailedError
from tenure.core.rows.names import ITEM_BYTES

VIEWS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "every other element of a row": lambda tensor: tensor[:, ::2],
    "elements from the middle of a row": lambda tensor: tensor[:, 1:4],
    "every other row": lambda tensor: tensor[::2],
    "rows and elements exchanged": lambda tensor: tensor.T,
    "the rows backwards": lambda tensor: tensor[::-1],
}
"""Views of a matrix whose memory does not lie as its rows do."""
TOO_MUCH: Final = ((2**50, (256,)), (2**62, (256,)))
"""Rows, and their shape: 2**60 bytes of float32, and more than 64 bits count."""
REFUSALS: Final = 20
PLAIN: Final = ((), (5,), (7, 3), (2, 0), (3, 2, 2))


def _views(matrix: Any) -> Iterator[tuple[str, Tensor]]:
    """Those that tensors of this kind have, in words."""
    for what, view_of in VIEWS.items():
        try:
            yield what, view_of(matrix)
        except (TypeError, ValueError, AttributeError):
            # Not every kind of tensor can be read backwards, say.
            continue


@check(
    "D5.strided-outputs",
    "a live output may be a strided view: its rows are copied as they read, or `live` raises ForeignTensorError",
)
def strided_outputs(rig: Rig) -> str:
    """Frozen, and then overwritten by the next forward pass."""
    frozen = refused = 0
    for dtype in ITEM_BYTES:
        values = rig.values(ROWS, (6,), dtype)
        whole = rig.bench.make(values, dtype)
        held: list[tuple[Held, str]] = []
        for what, view in _views(whole):
            expected = np.ascontiguousarray(VIEWS[what](values))
            try:
                live = rig.device.live("values", view)
            except ForeignTensorError:
                refused += 1
                continue
            count = len(expected)
            buffer = rig.allocate(Memory.DEVICE, count, expected.shape[1:], dtype)
            rig.device.copy(Lane.COMPUTE, Rows(buffer, 0, 2), Rows(live, count - 2, count))
            rig.device.copy(Lane.COMPUTE, Rows(buffer, 2, count), Rows(live, 0, count - 2))
            expected = np.concatenate([expected[-2:], expected[:-2]])
            held.append((Held(buffer, Memory.DEVICE, expected, dtype), f"{what} of a live output of {dtype}"))
        rig.bench.overwrite(whole, np.zeros_like(values))
        rig.end(Lane.COMPUTE)
        for each, what in held:
            rig.expect(each, each.values, what)
        frozen += len(held)
    return f"{frozen} views frozen, {refused} refused"


@check("D5.leftovers-of-any-kind", "`to_host` copies a tensor of any shape and dtype; a strided view it may refuse")
def leftovers_of_any_kind(rig: Rig) -> None:
    """Scalars, nothing, rows of rows, truth values; and views, which the next forward pass overwrites."""
    for dtype in ITEM_BYTES:
        for shape in PLAIN:
            values = rig.values(int(np.prod(shape)), (), dtype).reshape(shape)
            copy = rig.device.to_host(Lane.COMPUTE, rig.bench.make(values, dtype))
            rig.end(Lane.COMPUTE)
            rig.same(values, np.array(rig.bench.read(copy)), f"to_host of a tensor of {dtype}{list(shape)}")
        values = rig.values(ROWS, (6,), dtype)
        whole = rig.bench.make(values, dtype)
        copies: list[tuple[Tensor, str]] = []
        for what, view in _views(whole):
            try:
                copies.append((rig.device.to_host(Lane.COMPUTE, view), what))
            except OperationFailedError:
                continue
        rig.bench.overwrite(whole, np.zeros_like(values))
        rig.end(Lane.COMPUTE)
        for copy, what in copies:
            rig.same(VIEWS[what](values), np.array(rig.bench.read(copy)), f"to_host of {what} of a tensor of {dtype}")


@check("D5.more-than-there-is", "`allocate` of more than there is raises OperationFailedError, and takes nothing")
def more_than_there_is(rig: Rig) -> None:
    """Again and again; then buffers as ever."""
    device = rig.device
    for memory in Memory:
        for rows, row_shape in TOO_MUCH:
            for _ in range(REFUSALS):
                call = partial(device.allocate, memory, rows, row_shape, "float32")
                rig.refuses(call, f"{rows} rows of float32{list(row_shape)} of memory {memory.name} are allocated")
    for memory in Memory:
        try:
            held = rig.put(memory, rig.values())
        except OperationFailedError as error:
            rig.require(False, f"memory {memory.name} was refused where it was too much, and is now refused: {error}")
        else:
            rig.expect(held, held.values, f"memory {memory.name}, after more of it was refused")


@check("D6.own-of-any-kind", "`own` copies a host tensor of any shape, dtype and strides")
def own_of_any_kind(rig: Rig) -> None:
    """Of rows and of views of them, which are written afterwards."""
    for dtype in ITEM_BYTES:
        held = rig.put(Memory.PAGEABLE, rig.values(ROWS, (6,), dtype), dtype)
        other = rig.put(Memory.PAGEABLE, rig.values(ROWS, (6,), dtype), dtype)
        tensor = rig.device.tensor(held.rows, None)
        owned = [(rig.device.own(view), what) for what, view in (("all rows", tensor), *_views(tensor))]
        rig.device.copy_now(held.rows, other.rows)
        for copy, what in owned:
            expected = held.values if what == "all rows" else VIEWS[what](held.values)
            rig.same(expected, np.array(rig.bench.read(copy)), f"own of {what} of {dtype}, written since")
