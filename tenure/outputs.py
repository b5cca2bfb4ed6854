"""What a materialize returns: rows by request, cut when they are looked up.

What is looked up has memory of its own, or views a buffer of which it is at least half: so whoever keeps the rows of
one request keeps no more than twice of what they are, or `SMALL_BYTES`, however large its step was. The whole is kept
only as long as somebody keeps the mapping, and all of it is used again afterwards.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from tenure.backends.device import Device, Rows, Tensor
from tenure.backends.leftovers import is_list
from tenure.backends.memory import Lease
from tenure.core.rows.events import RequestId
from tenure.core.rows.names import NameId

SMALL_BYTES: Final = 2**12
"""Bytes of a buffer that any row of it may keep: a tensor's own bookkeeping is of that size, and cutting costs more."""

RowsByRequest: TypeAlias = Mapping[RequestId, Tensor]
Spans: TypeAlias = Mapping[RequestId, tuple[int, int]]
"""Per request `[start, stop)`."""


@dataclass(frozen=True, slots=True)
class StepOutputs:
    """The rows of one step, for the requests that were asked for.

    Shapes: per name and request `[hit + tokens, *row_shape]`, the hit's rows first. Whoever looks a request up twice
    may get two tensors over one memory.

    Attributes:
        hidden_states: None where the policy or the step has none.
        mm_outputs: per name the rows of each request; under a leftover's name each one's share of it.
    """

    hidden_states: RowsByRequest | None
    mm_outputs: Mapping[NameId, Mapping[RequestId, Any]]


class HitBuffer(NamedTuple):
    """The buffer of a read: its first `num_rows` rows are a hit's; what lies behind is free."""

    lease: Lease
    num_rows: int


class CutRows(Mapping[RequestId, Tensor]):
    """The rows of one name by request, read-only."""

    __slots__ = ("_all", "_device", "_hits", "_lease", "_make_room", "_spans", "_whole")

    def __init__(
        self,
        device: Device,
        lease: Lease,
        spans: Spans,
        hits: Mapping[RequestId, HitBuffer],
        make_room: Callable[[int], Lease],
    ) -> None:
        """Request r has the rows `spans[r]` of the lease, behind those of its hit; `make_room` leases so many rows."""
        self._device = device
        self._lease = lease
        self._spans = spans
        self._hits = hits
        self._make_room = make_room
        # All rows as one tensor, where they are small and somebody has looked.
        self._all: Tensor = None
        # Requests whose hit and own rows stand one behind the other.
        self._whole: dict[RequestId, Lease] = {}

    def __getitem__(self, request: RequestId) -> Tensor:
        start, stop = self._spans[request]
        if self._hits and (hit := self._hits.get(request)) is not None:
            return self._behind_hit(request, hit, start, stop)
        if self._all is None:
            if self._lease.kind.bytes > SMALL_BYTES:
                return self._cut(self._lease, start, stop)
            self._all = self._device.tensor(self._lease.rows(0, self._lease.kind.rows), self._lease)
        return self._all[start:stop]

    def _cut(self, lease: Lease, start: int, stop: int) -> Tensor:
        rows = Rows(lease.buffer, start, stop)
        if 2 * (stop - start) >= lease.kind.rows or lease.kind.bytes <= SMALL_BYTES:
            return self._device.tensor(rows, lease)
        return self._device.cut(rows)

    def _behind_hit(self, request: RequestId, hit: HitBuffer, start: int, stop: int) -> Tensor:
        """The rows of a hit and, behind them, those of the step."""
        count = hit.num_rows + stop - start
        lease = self._whole.get(request)
        if lease is None:
            lease = hit.lease
            if count > lease.kind.rows:
                lease = self._make_room(count)
                self._device.copy_now(lease.rows(0, hit.num_rows), hit.lease.rows(0, hit.num_rows))
            # What lies behind a hit belongs to this request alone.
            self._device.copy_now(lease.rows(hit.num_rows, count), self._lease.rows(start, stop))
            self._whole[request] = lease
        return self._cut(lease, 0, count)

    def __iter__(self) -> Iterator[RequestId]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


class SharedLeftover(Mapping[RequestId, Any]):
    """The shares of one leftover by request, read-only.

    Of a list each request gets its element, of a tensor with one row a token of the batch its rows, of anything else
    all of it.
    """

    __slots__ = ("_device", "_is_cut", "_places", "_spans", "_value")

    def __init__(self, device: Device, value: Any, places: Mapping[RequestId, int], spans: Spans, tokens: int) -> None:
        """Request r stands at `places[r]` in its batch of `tokens` tokens, and has the tokens `spans[r]` of it."""
        self._device = device
        self._value: Any = value
        self._places = places
        self._spans = spans
        described = device.describe(value)
        self._is_cut = described is not None and len(described[0]) > 0 and described[0][0] == tokens

    def __getitem__(self, request: RequestId) -> Any:
        start, stop = self._spans[request]
        if self._is_cut:
            return self._device.own(self._value[start:stop])
        value = self._value
        if is_list(value):
            place = self._places[request]
            return value[place] if place < len(value) else value
        return value

    def __iter__(self) -> Iterator[RequestId]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)
