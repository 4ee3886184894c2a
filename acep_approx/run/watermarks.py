"""How far a stream is complete: by delay, by punctuations, by source, by numbers without gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.errors import DataError
from acep_approx.events.columns import empty, encode_text, plain_type, text_codes
from acep_approx.kernels.watermarks import (
    CURRENT,
    DELAY,
    ENDED,
    FREE,
    IDLE,
    NEVER,
    NEWEST,
    NONE,
    STATE,
    USED,
    Rows,
    Sources,
    Waiting,
    advance,
    arrange,
)
from acep_approx.ranges import check, number_in

__all__ = ["ENDED", "NEVER", "Held", "Holder", "Watermarks"]

_EXPECTED = 2**61
"""The greatest tick of a source that is waited for: no other is so far ahead that it would be idle."""
_FEW = 8
"""Sources and waiting events for which there is room at first."""
_KEPT = {"newest": NEVER, "mark": NEVER, "last": NONE, "heap": -1}
"""Of each source, and what it is of one that is not known yet; the tournament is made anew."""
_Source = str | int | bool | None


@dataclass(frozen=True)
class Holder:
    """A source that holds the watermark back.

    Parameters
    ----------
    source : str, int, bool or None
        Its name; None: rows without a source.
    watermark : int
        Its own watermark, a tick; ``NEVER`` before anything moved it.
    missing : int or None
        The number that does not come while later ones wait, if there is one.
    """

    source: _Source
    watermark: int
    missing: int | None = None


@dataclass(frozen=True)
class Held:
    """What holds the watermark back: the sources whose own is the least, and those that are idle and do not count."""

    by: tuple[Holder, ...] = ()
    idle: tuple[_Source, ...] = ()


class Watermarks:
    """Follows the watermark of a stream: events with ticks below it are late.

    A punctuation with tick t says that no event below t comes any more [1]_ (section 2.4).

    * **Delay**: the watermark is the greatest tick so far less the delay, or the greatest punctuation if that is more.
    * **Sources**: each has a watermark of its own, and that of the stream is the least over those that are not idle. A
      source is known from its first row on, a punctuation of its own included. A source is idle while its greatest
      tick, of an event or a punctuation, is more than ``idle`` behind the greatest of all sources. Rows whose source is
      NULL are a source too; but a punctuation without a source counts for all: the watermark is then at least its tick,
      and it is no sign of life from any source.
    * **Numbers** (section 5.3): events carry whole numbers without gaps, rising with their ticks, within their source
      if there are several. All before the first gap has come, so the tick of the last event before it is the watermark:
      it needs no delay, and makes no event late. The first event that arrives has the first number: one with a lower
      number does not move the watermark, and is late if its tick is below. Events behind a gap are remembered (32 bytes
      each). A gap is given up once the watermark, by a delay or a punctuation, has passed the first event behind it:
      what is missing would be late. A number that comes twice counts once. Punctuations have no number.

    The watermark never falls: what a new source sends, or one that was idle, may be late.

    Parameters
    ----------
    delay : int or None
        How much lower than the greatest tick before it an event may be, ``0 .. 2**60``, in ticks. None: only
        punctuations, and numbers, move the watermark.
    idle : int, optional
        How far a source may be behind before it does not count, in ticks. Default: each source counts for ever.
    by_source : bool
        Whether rows have sources. Default False.
    by_sequence : bool
        Whether events have numbers. Default False.

    Attributes
    ----------
    current : int
        The watermark, in ticks. ``NEVER`` before anything moved it, ``ENDED`` after the end.

    Notes
    -----
    In the paper sequence numbers let an automaton go on from an event only to the one with the next number. A watermark
    says the same to everything that can wait for it, and what is behind a gap may still be looked at early.
    ``tests/test_watermarks.py`` holds this against a model in plain Python.

    References
    ----------
    .. [1] B. Chandramouli, J. Goldstein, D. Maier, "High-Performance Dynamic Pattern Matching over Disordered Streams",
       PVLDB 3(1), 2010.

    Examples
    --------
    >>> marks = Watermarks(2)
    >>> marks.advance(np.array([5, 9, 6, 12])).tolist()[1:], marks.current
    ([3, 7, 7], 10)
    >>> marks = Watermarks(0, by_source=True)
    >>> marks.advance(np.array([5, 3, 9]), pa.array(["x", "y", "x"])).tolist()[1:], marks.current
    ([5, 5], 5)
    >>> marks.holding().by
    (Holder(source='y', watermark=3, missing=None),)
    >>> marks = Watermarks(None, by_sequence=True)
    >>> marks.advance(np.array([10, 12, 15, 11]), sequence=np.array([1, 3, 4, 2])).tolist()[1:], marks.current
    ([10, 10, 10], 15)
    """

    def __init__(
        self, delay: int | None, *, idle: int | None = None, by_source: bool = False, by_sequence: bool = False
    ) -> None:
        self.current = NEVER
        self._by_source = by_source
        self._by_sequence = by_sequence
        self._names = _Names()
        self._expected: set[int] = set()  # sources that are waited for
        self._sources = Sources(*([_none()] * len(Sources._fields)))
        self._waiting = Waiting(*([_none()] * len(Waiting._fields)))
        self._state = np.full(STATE, -1)
        self._state[NEWEST], self._state[USED] = NEVER, 0
        self._state[DELAY] = -1 if delay is None else delay
        self._state[IDLE] = -1 if idle is None else idle
        self._make_room()

    def advance(
        self,
        ticks: Ints,
        source: pa.Array | None = None,
        sequence: Ints | None = None,
        is_punctuation: Bools | None = None,
    ) -> Ints:
        """Take in rows.

        Parameters
        ----------
        ticks : numpy.ndarray of int64, shape (n,)
            Their times, in order of arrival; below ``2**60`` in size.
        source : pyarrow.Array
            Texts, whole numbers or booleans; only looked at with ``by_source``. Default: NULL.
        sequence : numpy.ndarray of int64, shape (n,)
            Their numbers; only looked at with ``by_sequence``, and not where a row is a punctuation. Default: none has
            one.
        is_punctuation : numpy.ndarray of bool, shape (n,)
            Which rows are punctuations. Default: none.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
            The watermark before each row: the row is late, or a punctuation goes back, if its tick is below.

        Raises
        ------
        DataError
            ``ACEP-D030``: a column of this type cannot say the source; nothing was taken in.

        Complexity: O(n) in whole columns, and next to nothing where ticks ascend; with sources or numbers
        O(n log(sources)), and O(log(events that wait)) for each that waits.
        """
        if self._is_plain:
            return self._at_once(ticks, is_punctuation)
        rows = Rows(
            self._names.encode(source) if self._by_source and source is not None else np.zeros(len(ticks), np.int64),
            _writable(ticks),
            _writable(sequence) if self._by_sequence and sequence is not None else _none(),
            np.zeros(len(ticks), np.bool_) if is_punctuation is None else _writable(is_punctuation),
        )
        return self._by_row(rows)

    def follow(self, ticks: Ints) -> bool:
        """Take in events as ``advance`` does, if they ascend, none is late, and neither sources nor numbers count.

        Parameters
        ----------
        ticks : numpy.ndarray of int64, shape (n,)

        Returns
        -------
        bool
            False if that is not so, or there are none; then nothing changes.

        Examples
        --------
        >>> marks = Watermarks(2)
        >>> marks.follow(np.array([5, 9])), marks.current, marks.follow(np.array([6, 12])), marks.current
        (True, 7, False, 7)
        """
        if not self._is_plain or not len(ticks) or ticks[0] < self.current or (ticks[1:] < ticks[:-1]).any():
            return False
        if self._state[DELAY] >= 0:
            self.current = max(self.current, int(ticks[-1] - self._state[DELAY]))
        return True

    def punctuate(self, tick: int, source: object = None) -> bool:
        """Take in a punctuation: no event below this tick comes any more, from this source or from any.

        Parameters
        ----------
        tick : int
            Below ``2**60`` in size.
        source : str, int, bool or None
            Default: it counts for all sources, as it does where rows have none.

        Returns
        -------
        bool
            False if it goes back: it is below the source's own watermark, or below that of the stream if it counts for
            all. Then nothing changes.
        """
        slot = self._names.slot(source) if self._by_source else 0
        self._make_room()
        if tick < (self.current if slot == 0 else int(self._sources.mark[slot])):
            return False
        if self._is_plain:
            self.current = int(tick)
            return True
        self._by_row(Rows(np.array([slot]), np.array([tick]), _none(), np.array([True])))
        return True

    def expect(self, source: object) -> None:
        """Wait for the first row of a source: until it comes the watermark does not rise, and the source is not idle.

        A source that is known already is none to wait for.
        """
        slot = self._names.slot(source)
        self._make_room()
        if self._sources.newest[slot] == NEVER:
            self._sources.newest[slot] = _EXPECTED
            self._expected.add(slot)
            arrange(self._sources)

    def expect_no_more(self, source: object) -> bool:
        """Do not wait any more for a source that has sent nothing; whether it was waited for."""
        slot = self._names.slot(source)
        self._make_room()
        if slot not in self._expected:
            return False
        self._expected.remove(slot)
        self._sources.newest[slot] = NEVER
        arrange(self._sources)
        self._by_row(Rows(np.zeros(1, np.int64), np.array([self.current]), _none(), np.ones(1, np.bool_)))
        return True

    def close(self, tick: int = ENDED) -> None:
        """The stream has ended, or nothing below a tick comes any more; ``holding`` tells what there was before."""
        self.current = max(self.current, tick)

    def holding(self) -> Held:
        """What holds the watermark back.

        Returns
        -------
        Held
            Nothing without sources and numbers. With numbers and no sources, the only source is None.
        """
        known = np.flatnonzero(self._sources.newest != NEVER)
        behind, idle = self._state[NEWEST] - self._sources.newest[known], self._state[IDLE]
        is_idle = (behind > idle) & (idle >= 0)
        marks = self._sources.mark[known]
        is_least = ~is_idle & (marks == marks.min(initial=ENDED, where=~is_idle))
        by = tuple(self._holder(s) for s in known[is_least].tolist())
        return Held(by, tuple(self._names.values[s] for s in known[is_idle].tolist()))

    def header(self) -> dict[str, Any]:
        """All that is known, as JSON can hold it; ``restore`` goes on from there.

        Complexity: O(sources + the most events that have waited at a time).
        """
        many, waits = len(self._names.values), bool((self._sources.heap >= 0).any())
        per_source = {name: getattr(self._sources, name)[:many].tolist() for name in _KEPT}
        nodes = int(self._state[USED]) if waits else 0
        return {
            "delay": None if self._state[DELAY] < 0 else int(self._state[DELAY]),
            "idle": None if self._state[IDLE] < 0 else int(self._state[IDLE]),
            "by_source": self._by_source,
            "by_sequence": self._by_sequence,
            "current": self.current,
            "sources": {"name": self._names.values[:], **per_source},
            "waiting": {name: column[:nodes].tolist() for name, column in self._waiting._asdict().items()},
            "free": int(self._state[FREE]) if waits else -1,
        }

    @classmethod
    def restore(cls, header: dict[str, Any]) -> Watermarks:
        """Those that ``header`` was taken of: they go on as if nothing had been.

        Parameters
        ----------
        header : dict
            Also after a way through JSON.

        Returns
        -------
        Watermarks

        Raises
        ------
        DamagedError
            These are none.
        """
        for name in ("delay", "idle"):
            if header[name] is not None:
                number_in(name, header[name], 0, ENDED)
        marks = cls(**{name: header[name] for name in ("delay", "idle", "by_source", "by_sequence")})
        marks.current = number_in("current", header["current"], NEVER, ENDED + 1)
        marks._names = _Names(header["sources"]["name"])
        if marks._is_plain:
            return marks
        marks._make_room()
        for name in _KEPT:
            kept = header["sources"][name]
            getattr(marks._sources, name)[: len(kept)] = kept
        marks._waiting = Waiting(**{name: np.array(kept, np.int64) for name, kept in header["waiting"].items()})
        newest = marks._sources.newest
        marks._expected = set(np.flatnonzero(newest == _EXPECTED).tolist())
        marks._state[NEWEST] = newest.max(initial=NEVER, where=newest != _EXPECTED)
        marks._state[FREE], marks._state[USED] = header["free"], len(marks._waiting.number)
        marks._check_waiting()
        arrange(marks._sources)
        return marks

    def _check_waiting(self) -> None:
        """Refuse nodes that lead out of their room, or that two others lead to: whoever follows them comes to an end.

        Raises
        ------
        DamagedError
        """
        left, right = self._waiting.left.tolist(), self._waiting.right.tolist()
        check("waiting", good=len({len(column) for column in self._waiting}) == 1)
        seen, ahead = set[int](), self._sources.heap.tolist()
        free = int(self._state[FREE])
        while free >= 0:
            check("free", good=free < len(left) and free not in seen)
            seen.add(free)
            free = left[free]
        while ahead:
            node = ahead.pop()
            if node >= 0:
                check("waiting", good=node < len(left) and node not in seen)
                seen.add(node)
                ahead += left[node], right[node]

    @property
    def _is_plain(self) -> bool:
        """Whether neither sources nor numbers count: nothing is known but the watermark."""
        return not self._by_source and not self._by_sequence

    def _at_once(self, ticks: Ints, is_punctuation: Bools | None) -> Ints:
        """``advance`` where only the watermark is known."""
        before = empty(len(ticks))
        if not len(ticks):
            return before
        has_delay, delay = self._state[DELAY] >= 0, self._state[DELAY]
        before[0] = self.current
        if is_punctuation is not None and is_punctuation.any():
            said = np.where(is_punctuation, ticks, ticks - delay if has_delay else NEVER)
            before[1:], last = said[:-1], said[-1]
        elif has_delay:
            np.subtract(ticks[:-1], delay, out=before[1:])
            last = ticks[-1] - delay
        else:
            before[:] = self.current
            return before
        if (before[1:] < before[:-1]).any():
            np.maximum.accumulate(before, out=before)
        self.current = int(max(before[-1], last))
        return before

    def _by_row(self, rows: Rows) -> Ints:
        """``advance`` where each row may move another watermark."""
        self._make_room()
        before = empty(len(rows.tick))
        self._state[CURRENT] = self.current
        done = advance(rows, 0, self._sources, self._waiting, self._state, before)
        while done < len(rows.tick):
            room = max(_FEW, 2 * len(self._waiting.number))
            self._waiting = Waiting(*(extended(column, room) for column in self._waiting))
            done = advance(rows, done, self._sources, self._waiting, self._state, before)
        self.current = int(self._state[CURRENT])
        self._have_come(rows)
        return before

    def _have_come(self, rows: Rows) -> None:
        """Sources that were waited for, and sent rows, are as far as these say."""
        for slot in sorted(self._expected):
            mine = rows.tick[rows.source == slot]
            if len(mine):
                self._sources.newest[slot] = mine.max()
                self._expected.remove(slot)

    def _make_room(self) -> None:
        if self._is_plain or len(self._sources.key) >= len(self._names.values):
            return
        room = max(_FEW, 1 << (len(self._names.values) - 1).bit_length())
        kept = {name: extended(getattr(self._sources, name), room, fill) for name, fill in _KEPT.items()}
        self._sources = Sources(**kept, key=np.zeros(room, np.int64), winner=np.zeros(2 * room, np.int64))
        arrange(self._sources)

    def _holder(self, s: int) -> Holder:
        missing = int(self._sources.last[s]) + 1 if self._sources.heap[s] >= 0 else None
        return Holder(self._names.values[s], int(self._sources.mark[s]), missing)


class _Names:
    """Numbers sources in order of their first row; 0 is NULL.

    Parameters
    ----------
    values : list, optional
        Those known, NULL first.
    """

    def __init__(self, values: list[_Source] | None = None) -> None:
        self.values: list[_Source] = []
        self._slots: dict[tuple[type, _Source], int] = {}
        for value in [None] if values is None else values:
            self.slot(value)

    def slot(self, value: Any) -> int:
        """The number of a source, a new one if need be."""
        known = value.item() if isinstance(value, np.generic) else value
        key = (type(known), known)  # 1 is not True
        if key not in self._slots:
            self._slots[key] = len(self.values)
            self.values.append(known)
        return self._slots[key]

    def encode(self, column: pa.Array) -> Ints:
        """The number of the source of each row."""
        type_ = plain_type(column.type)
        if pa.types.is_null(type_):
            return np.zeros(len(column), np.int64)
        if not (pa.types.is_string(type_) or pa.types.is_integer(type_) or pa.types.is_boolean(type_)):
            raise DataError(
                f"a column of type {type_} cannot say which source an event comes from",
                code="ACEP-D030",
                hint="sources are texts, whole numbers or booleans",
            )
        coded = encode_text(column)
        coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
        codes, values = text_codes(coded), coded.dictionary.to_pylist()
        slots = [self._slots.get((type(value), value), -1) for value in values]
        if -1 in slots:
            for code in _in_order(codes, len(values)):
                slots[code] = self.slot(values[code])
        return np.array([*slots, 0])[codes]  # code -1, NULL, is the last


def _in_order(codes: Ints, many: int) -> list[int]:
    """The codes that occur, in order of their first row; a dictionary may hold others."""
    first = np.full(many + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last write wins
    occurring = np.flatnonzero(first[:many] < len(codes))
    ordered: list[int] = occurring[np.argsort(first[occurring])].tolist()
    return ordered


def _writable(column: Any) -> Any:
    """Columns of a file are read-only: another type to numba."""
    return np.require(column, requirements=["C", "W"])


def _none() -> Ints:
    return np.zeros(0, np.int64)
