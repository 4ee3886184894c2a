"""Key values to dense slots, so that the state of every key lives in flat arrays."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.carried import as_json
from acep_approx.events.columns import CODED, empty, encode_text, is_list, plain_type, text_codes, to_arrow, to_numpy
from acep_approx.events.integer_keys import IntegerKeys
from acep_approx.ranges import check, check_range

Slots = npt.NDArray[np.int64]

FEW = 32
"""Events up to which each is looked up by itself: what is done per batch would take longer."""
MANY = 1024
"""Events from which on whole numbers are found by a table of their own."""
NO_KEY = -(2**63)
"""What stands for the identity of a slot that no key has."""
_UNKNOWN = -2
_INT64 = pa.int64().id
_NAN = float("nan")  # one object: NaN equals itself as a key, as in GROUP BY


class KeyCodes:
    """Numbers the keys of a stream as they appear: 0, 1, 2, ... in order of their first event.

    A key is the values of one or several columns. A freed slot is used again, the smallest first, so the
    numbers depend on the events and on what was released, not on how the stream is cut into batches.

    Examples
    --------
    >>> keys = KeyCodes()
    >>> keys.encode([pa.array(["x", "y", None, "x"])]).tolist()
    [0, 1, -1, 0]
    >>> keys.value(1), len(keys)
    (('y',), 2)
    """

    def __init__(self) -> None:
        self._types: list[pa.DataType] | None = None
        self._slots: dict[Any, int] = {}
        self._keys: list[Any] = []  # by slot; None where the slot is free
        self._free: list[int] = []  # a heap
        self.added = 0  # keys that were new
        self._again: dict[int, int] = {}  # of slots that were used before, how many keys came before theirs
        self._last: _Dictionary | None = None
        self._integers = IntegerKeys(self._find)
        self._fitting: list[pa.DataType] = []  # of the columns given last, if they can be keys as they are

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def is_empty(self) -> bool:
        """Whether no slot has a key: there is one partition, or no event yet."""
        return not self._slots

    @property
    def uses_again(self) -> bool:
        """Whether a slot may have been given to another key."""
        return self.added != self.capacity

    def identities(self) -> Slots:
        """Per slot a number that changes when another key gets the slot; ``NO_KEY`` where it is free."""
        found = np.arange(len(self._keys))
        if self.uses_again:
            again = np.array(list(self._again.items()), np.int64).reshape(-1, 2)
            found[again[:, 0]] = -1 - again[:, 1]
            found[self._free] = NO_KEY
        return found

    def codes(self, slots: Slots) -> Slots:
        """Numbers that tell keys apart, also when a key gets another slot while its last events still matter."""
        return slots

    @property
    def capacity(self) -> int:
        """All slots in use are below this number; what state arrays must have room for."""
        return len(self._keys)

    def used(self) -> Slots:
        """All slots that hold a key, in the order in which their keys came."""
        return np.fromiter(self._slots.values(), np.int64, len(self._slots))

    def encode(self, columns: Sequence[pa.Array]) -> Slots:
        """The slot of each event's key; a key not seen before gets a new one.

        Parameters
        ----------
        columns : sequence of pyarrow.Array
            At least one, of equal length; plain or dictionary-encoded.

        Returns
        -------
        numpy.ndarray of int64
            Slots; -1 where any of the columns is null.

        Raises
        ------
        DataError
            ``ACEP-D030`` a type that cannot be a key; ``ACEP-D031`` a column changed its type.
        """
        types = [column.type for column in columns]
        if types != self._fitting:
            if any(map(pa.types.is_null, types)):
                return np.full(len(columns[0]), -1, np.int64)
            self._check_types([plain_type(type_) for type_ in types])
            if any(map(is_list, types)):
                columns = [as_key(column) for column in columns]
            else:
                self._fitting = types
        if len(columns[0]) <= FEW:
            lists = [_few_in_python(column) for column in columns]
            keys = lists[0] if len(lists) == 1 else [None if None in key else key for key in zip(*lists, strict=True)]
            return np.array(self._find(keys), np.int64)
        if len(columns) == 1:
            known = self._integers.slots(columns[0]) if _is_integers(columns[0]) else None
            return self._of_dictionary(_coded(columns[0])) if known is None else known
        parts = [_distinct(column) for column in columns]
        codes, size = parts[0][0], len(parts[0][1])
        for more, values in parts[1:]:
            codes, size = _paired(codes, more, len(values))
        rows, distinct = _first_rows(codes, size)
        found = self._find(_keys_at([(own[rows], values) for own, values in parts]))
        slot_of = np.full(size + 1, -1, np.int64)  # the last one is what code -1 finds
        slot_of[distinct] = found
        return slot_of[codes]

    def find(self, column: pa.Array) -> Slots:
        """The slot of each key of one column; -1 where it is null, or not known: it gets none."""
        codes, values = _distinct(column)
        known = [self._slots.get(value, -1) for value in _in_python(values)]
        return np.array([*known, -1], np.int64)[codes]

    def value(self, slot: int) -> tuple[Any, ...]:
        """The key of a slot as Python values, one per column."""
        return tuple(column[0].as_py() for column in self.values(np.array([slot])))

    def values(self, slots: Slots) -> list[pa.Array]:
        """The keys of slots, for output.

        Parameters
        ----------
        slots : numpy.ndarray of int64
            Slots in use, in any order, repeated or not; -1 gives null.

        Returns
        -------
        list of pyarrow.Array
            One per key column, typed as the columns that came in; of lists the JSON texts.

        Raises
        ------
        LookupError
            A slot holds no key.
        """
        if len(slots) <= FEW:
            return self._typed(self._columns([self._key(slot) for slot in slots.tolist()]))
        is_used = np.zeros(len(self._keys) + 1, np.bool_)
        is_used[slots] = True  # -1 is the last one
        distinct = np.flatnonzero(is_used)
        place_of = np.cumsum(is_used) - 1
        keys = [self._key(slot if slot < len(self._keys) else -1) for slot in distinct.tolist()]
        take = to_arrow(place_of[slots])
        return [column.take(take) for column in self._typed(self._columns(keys))]

    def _columns(self, keys: list[tuple[Any, ...]]) -> Iterable[Sequence[Any]]:
        return zip(*keys, strict=True) if keys else [()] * len(self._types or ())

    def _typed(self, columns: Iterable[Sequence[Any]]) -> list[pa.Array]:
        pairs = zip(columns, self._types or (), strict=True)
        return [pa.array(column, _storage(type_)).cast(type_) for column, type_ in pairs]

    def texts(self) -> list[str]:
        """Per slot its key as text, the values of several columns joined by " | "; "" where the slot is free."""
        return [self.text(slot) for slot in range(len(self._keys))]

    def texts_at(self, slots: Slots) -> list[str]:
        """The keys of some slots as ``texts`` has them."""
        return [self.text(slot) for slot in slots.tolist()]

    def text(self, slot: int) -> str:
        """The key of a slot as ``texts`` has it."""
        key = self._keys[slot]
        if key is None:
            return ""
        return str(key) if len(self._types or ()) <= 1 else " | ".join(map(str, key))

    def release(self, slots: Iterable[int] | Slots) -> None:
        """Forget the keys of some slots; the slots are used again for new keys.

        Raises
        ------
        LookupError
            A slot holds no key.
        """
        for slot in np.asarray(slots, np.int64).tolist():
            if slot < 0 or slot >= len(self._keys) or self._keys[slot] is None:
                raise LookupError(f"slot {slot} holds no key")
            if self._slots.get(self._keys[slot]) == slot:  # else it has got another one
                del self._slots[self._keys[slot]]
            self._keys[slot] = None
            heapq.heappush(self._free, slot)
        self._forget_found()

    def renew(self, slots: Slots) -> list[int]:
        """Give the keys of some slots new ones, one after the other: later events of theirs are there.

        The slots keep their keys, for output, until they are released. Until then there is no state of it all.
        """
        found = [self._add(self._keys[slot]) for slot in slots.tolist()]
        self._forget_found()
        return found

    def _forget_found(self) -> None:
        """Look up all keys again: some are gone, or have got other slots."""
        self._last = None
        self._integers.forget()

    def to_state(self) -> pa.RecordBatch:
        """Everything this object knows, as columns: ``slot``, ``key0``, ``key1``, ..."""
        used = [slot for slot, key in enumerate(self._keys) if key is not None]
        keys = [self._keys[slot] for slot in used] if self._free else self._keys
        width = len(self._types or ())
        typed = self._typed([keys] if width == 1 else self._columns(keys))
        names = ["slot", *(f"key{i}" for i in range(width))]
        return pa.RecordBatch.from_arrays([to_arrow(np.array(used, np.int64)), *typed], names=names)

    @classmethod
    def from_state(cls, state: pa.RecordBatch, slots: int | None = None) -> KeyCodes:
        """The inverse of :meth:`to_state`: goes on numbering exactly as the original would.

        Raises
        ------
        DamagedError
            Not so many ``slots`` hold keys, or not one each.
        """
        keys = cls()
        numbers, *columns = state.columns
        check("keys", good=numbers.type == pa.int64() and not any(column.null_count for column in state.columns))
        if not columns:
            return keys
        keys._check_types([column.type for column in columns])
        values = [_in_python(_held(column)) for column in columns]
        rows = values[0] if len(values) == 1 else list(zip(*values, strict=True))
        used = numbers.to_numpy().tolist()
        check_range("keys", used, 0, (max(used, default=0) if slots is None else slots - 1) + 1)
        check("keys", good=all(before < after for before, after in pairwise(used)))
        keys._slots = dict(zip(rows, used, strict=True))
        check("keys", good=len(keys._slots) == len(used))
        if used == list(range(len(used))):
            keys._keys = rows
            return keys
        keys._keys = [None] * (max(used) + 1)
        for key, slot in keys._slots.items():
            keys._keys[slot] = key
        keys._free = [slot for slot, key in enumerate(keys._keys) if key is None]  # sorted, hence a heap
        return keys

    def widened(self, types: list[pa.DataType]) -> KeyCodes:
        """The same keys in the same slots, as values of wider types.

        Raises
        ------
        pyarrow.ArrowInvalid
            A value cannot be held exactly.
        """
        types = [key_type(type_) for type_ in types]
        if self._types is None or types == self._types:
            return self
        slots, *columns = self.to_state().columns
        cast = [column.cast(type_) for column, type_ in zip(columns, types, strict=True)]
        names = ["slot", *(f"key{i}" for i in range(len(types)))]
        keys = KeyCodes.from_state(pa.RecordBatch.from_arrays([slots, *cast], names=names))
        keys.added, keys._again = self.added, self._again
        return keys

    def _check_types(self, types: list[pa.DataType]) -> None:
        if self._types is None:
            for type_ in types:
                if not can_be_key(type_):
                    raise DataError(
                        f"a column of type {type_} cannot be a key",
                        code="ACEP-D030",
                        hint="keys are strings, numbers, booleans, dates, timestamps, and lists of the first four",
                    )
        types = [key_type(type_) for type_ in types]
        if self._types is None:
            self._types = types
        elif types != self._types:
            before, now = (", ".join(map(str, t)) for t in (self._types, types))
            raise DataError(
                f"the key was of type {before}, and now it is {now}",
                code="ACEP-D031",
                hint="all batches of a stream need the same types",
            )

    def _of_dictionary(self, coded: pa.DictionaryArray) -> Slots:
        """The slots of a column; where batch after batch has one and the same dictionary it is looked up once."""
        values = coded.dictionary
        if self._last is None or not self._last.is_of(values):
            self._last = _Dictionary(values)
        slot_of = self._last.slot_of
        codes = text_codes(coded) if coded.indices.null_count else to_numpy(coded.indices)  # that is not copied
        found = np.take(slot_of, codes, out=empty(len(codes)), mode="wrap")  # any mode that raises copies
        if len(found) and found.min() == _UNKNOWN:
            unknown = np.flatnonzero(found == _UNKNOWN)
            _, distinct = _first_rows(codes[unknown].astype(np.int64), len(values))
            slot_of[distinct] = self._find(_keys_at([(distinct, values)]))
            found[unknown] = slot_of[codes[unknown]]
        return found

    def _find(self, keys: list[Any]) -> list[int]:
        """Slots of keys, -1 for None; those not known get one, in the order given."""
        found: list[Any] = list(map(self._slots.get, keys))
        if None in found:
            for place, key in enumerate(keys):
                if found[place] is None:  # one that equals it may have come just now, as 0.0 and -0.0 do
                    known = -1 if key is None else self._slots.get(key)
                    found[place] = self._add(key) if known is None else known
        return found

    def _add(self, key: Any) -> int:
        if self._free:
            slot = heapq.heappop(self._free)
            self._keys[slot] = key
            self._again[slot] = self.added
        else:
            slot = len(self._keys)
            self._keys.append(key)
        self._slots[key] = slot
        self.added += 1
        return slot

    def _key(self, slot: int) -> tuple[Any, ...]:
        width = len(self._types or ())
        if slot == -1:
            return (None,) * width
        key = self._keys[slot] if 0 <= slot < len(self._keys) else None
        if key is None:
            raise LookupError(f"slot {slot} holds no key")
        return key if width > 1 else (key,)


class _Dictionary:
    """The slots of the values of a dictionary, as far as they were asked for; the last one is that of code -1."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values  # kept: as long as it lives nothing else stands at its addresses
        self.slot_of = np.full(len(values) + 1, _UNKNOWN)
        self.slot_of[-1] = -1

    def is_of(self, values: pa.Array) -> bool:
        """Whether these are the same values in the same memory."""
        mine = self._values
        if len(mine) != len(values) or mine.offset != values.offset or mine.type != values.type:
            return False
        pairs = zip(mine.buffers(), values.buffers(), strict=True)
        return all(a is b or (a is not None and b is not None and a.address == b.address) for a, b in pairs)


def can_be_key(type_: pa.DataType) -> bool:
    """Whether the values of a column can be keys."""
    kinds = [pa.types.is_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean]
    if is_list(type_):
        type_ = plain_type(type_.value_type)
        kinds += [pa.types.is_null]  # so far all lists were empty
    else:
        kinds += [pa.types.is_date, pa.types.is_timestamp]
    return any(is_kind(type_) for is_kind in kinds)


def key_type(type_: pa.DataType) -> pa.DataType:
    """The type that values of a column have as keys."""
    return pa.string() if is_list(type_) else type_


def as_key(column: pa.Array) -> pa.Array:
    """The values of a column as keys: lists as JSON, in which 1.0 is 1 as it is alone.

    >>> as_key(pa.array([["a", "b"], None, []])).to_pylist(), as_key(pa.array([[1.0, -0.0, 0.5]])).to_pylist()
    (['["a","b"]', None, '[]'], ['[1,0,0.5]'])
    """
    if not is_list(column.type):
        return column
    lists = column.to_pylist()
    if pa.types.is_floating(column.type.value_type):
        lists = [items and [_whole(item) for item in items] for items in lists]
    return pa.array([None if items is None else as_json(items) for items in lists], pa.string())


def _whole(item: float | None) -> float | None:
    return int(item) if item is not None and item.is_integer() else item


def _storage(type_: pa.DataType) -> pa.DataType:
    """The type in which key values are held: times as integers, which are cheap and exact in Python."""
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return pa.int64()
    return type_


def _distinct(column: pa.Array) -> tuple[Slots, pa.Array]:
    coded = _coded(column)
    return text_codes(coded), coded.dictionary


def _is_integers(column: pa.Array) -> bool:
    return len(column) >= MANY and column.type.id == _INT64 and column.null_count == 0


def _coded(column: pa.Array) -> pa.DictionaryArray:
    coded = encode_text(column)
    if pa.types.is_dictionary(coded.type):
        return coded
    return _held(coded).dictionary_encode()


def _paired(codes: Slots, more: Slots, size: int) -> tuple[Slots, int]:
    """One code for pairs of codes, dense again so that any number of columns fits 64 bits."""
    pairs = np.where((codes < 0) | (more < 0), -1, codes * size + more)
    distinct, places = np.unique(pairs, return_inverse=True)
    has_null = bool(len(distinct)) and distinct[0] == -1
    return places.reshape(-1) - has_null, len(distinct) - has_null


def _first_rows(codes: Slots, size: int) -> tuple[Slots, Slots]:
    count = len(codes)
    first = np.full(size + 1, count, np.int64)
    first[codes[::-1]] = np.arange(count - 1, -1, -1)  # the last write wins: the first row
    rows = np.sort(first[:size])
    rows = rows[: np.searchsorted(rows, count)]
    return rows, codes[rows]


def _keys_at(parts: list[tuple[Slots, pa.Array]]) -> list[Any]:
    columns = [_in_python(values.take(to_arrow(codes))) for codes, values in parts]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _held(column: pa.Array) -> pa.Array:
    storage = _storage(plain_type(column.type))
    if column.type == storage:
        return column
    is_coded = pa.types.is_dictionary(column.type) and column.type.value_type == storage
    return column.dictionary_decode() if is_coded else column.cast(storage)


def _few_in_python(column: pa.Array) -> list[Any]:
    """The values of a short column as objects of Python."""
    if not column.type.equals(CODED):
        return _in_python(_held(column))
    texts = column.dictionary.to_pylist()
    return [None if code is None else texts[code] for code in column.indices.to_pylist()]


def _in_python(values: pa.Array) -> list[Any]:
    """The values of such a column as objects of Python, None for a null.

    Equal floats are one key and show as one value: NaN is, and -0.0 is 0.0.
    """
    found: list[Any] = values.to_pylist()
    if not pa.types.is_floating(values.type):
        return found
    return [one if one is None else _NAN if one != one else one + 0.0 for one in found]  # noqa: PLR0124
