"""Versioned containers: old versions stay readable, and an update costs what it changes.

The newest version of a container owns the plain data. An older one holds only what differs in its successor, and
when it is read it takes the data over and leaves the difference to the other (Baker 1978; Conchon and Filliâtre
2007). Small containers copy themselves instead, so that jumping between thousands of versions costs no walk.

    older --undo--> older --undo--> newest owns the data

Reading an older version changes what the versions share, so whoever reads versions from several threads must hold
one lock. What is handed out (`to_numpy`, `items`) is read-only and nobody's to change.

**Architecture invariant:** pointers lead from every version to the one that owns the data, and never back, so
dropping the older versions frees their differences.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

Store = TypeVar("Store")
Undo = TypeVar("Undo")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

COPY_BELOW: Final = 64
"""Containers of fewer elements copy themselves instead of keeping differences."""


class Version(ABC, Generic[Store, Undo]):
    """One version of a container; `_store` is the plain data if this version owns it, else None."""

    __slots__ = ("__weakref__", "_newer", "_store", "_undo")

    _store: Store | None
    # Invariant: exactly one of `_store` and (`_undo`, `_newer`) is set.
    _undo: Undo | None
    _newer: "Version[Store, Undo] | None"

    def _adopt(self, store: Store) -> None:
        self._store, self._undo, self._newer = store, None, None

    def _hand_over(self, newer: Self, store: Store, undo: Undo) -> None:
        """Make `newer` the owner of `store`, which `undo` leads back from to this version.

        A container does this *before* it changes the store: putting back what was not yet changed is harmless, so
        this version stays what it was also where the change is interrupted.
        """
        newer._adopt(store)
        self._undo, self._newer = undo, newer
        self._store = None

    def _own(self) -> Store:
        """The plain data as of this version; this version owns it afterwards."""
        if self._store is not None:
            return self._store
        path: list[Version[Store, Undo]] = []
        node: Version[Store, Undo] = self
        while node._newer is not None:
            path.append(node)
            node = node._newer
        store = cast("Store", node._store)
        for older in reversed(path):
            redo = self._swap(store, cast("Undo", older._undo))
            node._store, node._undo, node._newer = None, redo, older
            older._adopt(store)
            node = older
        return store

    @staticmethod
    @abstractmethod
    def _swap(store: Store, undo: Undo) -> Undo:
        """Apply `undo` to the data and give back what leads forward again."""


# --- Vector -----------------------------------------------------------------------------------------------------

_VectorUndo: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[Any]]


class Vector(Version[npt.NDArray[Any], _VectorUndo]):
    """A versioned one-dimensional numpy array of fixed length.

    A batched update of k elements costs O(k) array work; a version of fewer than `COPY_BELOW` elements costs a copy.
    """

    __slots__ = ()

    def __init__(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> None:
        """Take a copy of `values`.

        Shapes: `values: [length]`.

        Raises:
            ValueError: `values` is not one-dimensional.
        """
        array = np.array(values, dtype=dtype)
        if array.ndim != 1:
            msg = f"a vector is one-dimensional, not of shape {array.shape}"
            raise ValueError(msg)
        self._adopt(array)

    @classmethod
    def full(cls, length: int, value: int | float | bool, dtype: npt.DTypeLike) -> Self:
        """A vector of `length` equal elements."""
        return cls(np.full(length, value, dtype=dtype))

    @staticmethod
    def _swap(store: npt.NDArray[Any], undo: _VectorUndo) -> _VectorUndo:
        indices, values = undo
        redo = (indices, store[indices])
        store[indices] = values
        return redo

    def set(self, indices: npt.ArrayLike, values: npt.ArrayLike) -> Self:
        """A new version with `values` at `indices`; of an index named twice the last value stays.

        Shapes: `indices: [k]`, `values: [k]` or a scalar; copied.

        Raises:
            IndexError: an index is outside `[-length, length)`.
            ValueError: `values` do not fit the indices.
        """
        array = self._own()
        chosen = np.atleast_1d(np.array(indices, dtype=np.int64))
        given = np.broadcast_to(np.asarray(values, dtype=array.dtype), chosen.shape)
        newer = object.__new__(type(self))
        if len(array) < COPY_BELOW:
            array = array.copy()
            array[chosen] = given
            newer._adopt(array)
        else:
            self._hand_over(newer, array, (chosen, array[chosen]))
            array[chosen] = given
        return newer

    def take(self, indices: npt.ArrayLike) -> npt.NDArray[Any]:
        """The elements at `indices`, as an array of their own.

        Raises:
            IndexError: an index is outside `[-length, length)`.
        """
        return self._own()[np.array(indices, dtype=np.int64)]

    def to_numpy(self) -> npt.NDArray[Any]:
        """A read-only copy of all elements."""
        array = self._own().copy()
        array.flags.writeable = False
        return array

    def __getitem__(self, index: int) -> Any:
        return self._own()[index].item()

    def __len__(self) -> int:
        return len(self._own())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vector):
            return NotImplemented
        if self is other:
            return True
        mine, theirs = self.to_numpy(), other._own()
        return mine.dtype == theirs.dtype and bool(np.array_equal(mine, theirs))

    def __hash__(self) -> int:
        array = self._own()
        return hash((array.dtype.str, array.tobytes()))

    def __repr__(self) -> str:
        return f"Vector({self._own()!r})"


# --- Map --------------------------------------------------------------------------------------------------------


class _Missing(IntEnum):
    """The value of a key that is not there."""

    MISSING = 0


MISSING: Final = _Missing.MISSING

_MapUndo: TypeAlias = list[tuple[Any, Any]]


class Map(Version[dict[Any, Any], _MapUndo], Generic[Key, Value]):
    """A versioned mapping over a plain dict. It has no order of its own: `items` sorts.

    An update of k keys costs O(k) dict operations; a version of fewer than `COPY_BELOW` keys costs a copy.
    """

    __slots__ = ()

    def __init__(self, items: Mapping[Key, Value] | Iterable[tuple[Key, Value]] = ()) -> None:
        """Take a copy of `items`."""
        self._adopt(dict(items))

    @staticmethod
    def _swap(store: dict[Any, Any], undo: _MapUndo) -> _MapUndo:
        redo = [(key, store.get(key, MISSING)) for key, _ in undo]
        _put_all(store, undo)
        return redo

    def _with(self, changes: _MapUndo) -> Self:
        store = self._own()
        newer = object.__new__(type(self))
        if len(store) < COPY_BELOW:
            store = store.copy()
            _put_all(store, changes)
            newer._adopt(store)
        else:
            self._hand_over(newer, store, [(key, store.get(key, MISSING)) for key, _ in changes])
            _put_all(store, changes)
        return newer

    def set(self, key: Key, value: Value) -> Self:
        """A new version with `value` under `key`."""
        return self._with([(key, value)])

    def update(self, items: Mapping[Key, Value]) -> Self:
        """A new version with all of `items`."""
        return self._with(list(items.items()))

    def remove(self, keys: Iterable[Key]) -> Self:
        """A new version without `keys`; naming a key twice is the same as once.

        Raises:
            KeyError: a key is not there.
        """
        store = self._own()
        chosen = list(dict.fromkeys(keys))
        for key in chosen:
            if key not in store:
                raise KeyError(key)
        return self._with([(key, MISSING) for key in chosen])

    def get(self, key: Key) -> Value | None:
        """The value under `key`, or None."""
        return cast("Value | None", self._own().get(key))

    def items(self) -> tuple[tuple[Key, Value], ...]:
        """All pairs, sorted by key: what is iterated over must not depend on history."""
        return tuple(sorted(self._own().items(), key=lambda pair: pair[0]))

    def __getitem__(self, key: Key) -> Value:
        return cast("Value", self._own()[key])

    def __contains__(self, key: object) -> bool:
        return key in self._own()

    def __len__(self) -> int:
        return len(self._own())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Map):
            return NotImplemented
        if self is other:
            return True
        mine = dict(self._own())
        return mine == other._own()

    def __hash__(self) -> int:
        return hash(frozenset(self._own().items()))

    def __repr__(self) -> str:
        return f"Map({self._own()!r})"


def _put_all(store: dict[Any, Any], pairs: _MapUndo) -> None:
    for key, value in pairs:
        if value is MISSING:
            store.pop(key, None)
        else:
            store[key] = value


# --- Journals ---------------------------------------------------------------------------------------------------


class Change(IntEnum):
    """What one journal entry puts back. Every entry is its own inverse: applying it leaves the entry that undoes it.

    An entry is written *before* what it describes is done, and putting back what was not yet changed is harmless: so
    whatever interrupts a transition, and wherever, its journal leads back. Lists in an entry may still grow while the
    transition runs; the last of two lists that grow together may be one element short.

    | kind | entry | puts back |
    |---|---|---|
    | ITEM | `(ITEM, dict, key, old)` | one item, or its absence |
    | ITEMS | `(ITEMS, dict, keys, olds)` | several items; a key named twice has the same old one twice |
    | CELL | `(CELL, list, index, old)` | one element |
    | CELLS | `(CELLS, list, indices, olds)` | several elements; an index named twice has the same old one twice |
    | ATTRIBUTE | `(ATTRIBUTE, object, name, old)` | one attribute |
    | ATTRIBUTES | `(ATTRIBUTES, objects, name, olds)` | one attribute of several objects; no object twice |
    | TAIL | `(TAIL, list, start, old)` | everything from `start` on |
    | TAILS | `(TAILS, lists, starts, olds)` | per list everything from its start on; `olds` None: nothing |
    """

    ITEM = 0
    ITEMS = 1
    ATTRIBUTE = 2
    ATTRIBUTES = 3
    TAIL = 4
    TAILS = 5
    CELL = 6
    CELLS = 7


ITEM: Final = Change.ITEM
ITEMS: Final = Change.ITEMS
ATTRIBUTE: Final = Change.ATTRIBUTE
ATTRIBUTES: Final = Change.ATTRIBUTES
TAIL: Final = Change.TAIL
TAILS: Final = Change.TAILS
CELL: Final = Change.CELL
CELLS: Final = Change.CELLS

Entry: TypeAlias = tuple[Change, Any, Any, Any]
Journal: TypeAlias = list[Entry]
"""What one transition changed in a store of plain containers, in order."""


def revert(journal: Journal) -> Journal:
    """Undo a journal, last entry first, and give back the journal that redoes it."""
    return [_revert_entry(*entry) for entry in reversed(journal)]


def _revert_entry(change: Change, target: Any, key: Any, old: Any) -> Entry:
    if change is ITEM:
        now = target.get(key, MISSING)
        _put_all(target, [(key, old)])
        return (ITEM, target, key, now)
    if change is ITEMS:
        now = [target.get(each, MISSING) for each in key]
        _put_all(target, list(zip(key, old, strict=True)))
        return (ITEMS, target, key, now)
    if change is CELL:
        now = target[key]
        target[key] = old
        return (CELL, target, key, now)
    if change is CELLS:
        now = [target[each] for each in key]
        for each, value in zip(key, old, strict=True):
            target[each] = value
        return (CELLS, target, key, now)
    if change is ATTRIBUTE:
        now = getattr(target, key)
        setattr(target, key, old)
        return (ATTRIBUTE, target, key, now)
    if change is ATTRIBUTES:
        now = [getattr(each, key) for each in target]
        for each, value in zip(target, old, strict=False):
            setattr(each, key, value)
        return (ATTRIBUTES, target, key, now)
    if change is TAIL:
        now = target[key:]
        target[key:] = old
        return (TAIL, target, key, now)
    return (TAILS, *_revert_tails(target, key, old))


def _revert_tails(
    lists: list[list[Any]], starts: list[int], olds: list[list[Any]] | None
) -> tuple[list[list[Any]], list[int], list[list[Any]]]:
    # Last list first, and handed back reversed: a list that grew twice shrinks, and grows again, in order.
    count = len(lists)
    before: list[list[Any]] = [[]] * count if olds is None else olds
    chosen = list(zip(lists, starts[:count], before, strict=True))[::-1]
    now: list[list[Any]] = []
    for each, start, old in chosen:
        now.append(each[start:])
        each[start:] = old
    return [each for each, _, _ in chosen], [start for _, start, _ in chosen], now
