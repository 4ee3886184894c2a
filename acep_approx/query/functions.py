"""The functions of the query language, one row each: what they take, what they give, and how Arrow computes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acep_approx.errors import DataError


@dataclass(frozen=True)
class Function:
    """A function over columns: NULL where one of its arguments is, if nothing else is said.

    Parameters
    ----------
    name : str
        As it is called; operators that are computed as functions have names in capitals.
    arguments : tuple of str
        What each argument is: ``string``, ``number``, ``time`` (as clocks show it in the zone of its column), ``list``,
        ``ordered`` (any of the first three) or ``value``, which may be a boolean, too. All that are ``ordered`` or
        ``value`` are of one kind.
    result : str
        ``string``, ``number``, ``time``, ``boolean``, or ``same``: as the arguments.
    compute : callable
        Gets an Arrow array or scalar for each argument, for constants their plain values, and gives an array or scalar.
    constants : int, default 0
        How many of the arguments, the last ones, must be constants.
    optional : int, default 0
        How many of the arguments, the last ones, may be left out.
    repeats : bool, default False
        Whether the last argument may stand any number of times.
    """

    name: str
    arguments: tuple[str, ...]
    result: str
    compute: Callable[..., Any]
    constants: int = 0
    optional: int = 0
    repeats: bool = False

    def wanted(self, place: int) -> str:
        """What the argument at a place is."""
        return self.arguments[min(place, len(self.arguments) - 1)]

    def is_constant(self, place: int) -> bool:
        """Whether the argument at a place must be a constant."""
        return place >= len(self.arguments) - self.constants and self.constants > 0


def _arrow(name: str) -> Callable[..., Any]:
    """A function of Arrow; Arrow is loaded when it is called."""

    def compute(*values: Any, **options: Any) -> Any:
        import pyarrow.compute as pc

        return getattr(pc, name)(*values, **options)

    return compute


def _like(*, ignore_case: bool) -> Callable[..., Any]:
    def compute(text: Any, pattern: str) -> Any:
        if "\\" not in pattern:
            return _arrow("match_like")(text, pattern, ignore_case=ignore_case)
        # Arrow takes escapes at the end of some patterns for signs of the text.
        signs = re.findall(r"\\.|.", pattern, re.DOTALL)
        parts = (_WILD.get(sign, f"\\x{{{ord(sign[-1]):x}}}") for sign in signs)
        return _arrow("match_substring_regex")(text, rf"(?s)\A{''.join(parts)}\z", ignore_case=ignore_case)

    return compute


_WILD = {"%": ".*", "_": "."}


def _substr(text: Any, start: int, length: int | None = None) -> Any:
    stop = None if length is None else start - 1 + length
    return _arrow("utf8_slice_codeunits")(text, start - 1, stop)


def _length(several: Any) -> Any:
    import pyarrow as pa

    count = "utf8_length" if pa.types.is_string(several.type) or pa.types.is_large_string(several.type) else None
    return _arrow(count or "list_value_length")(several).cast("int64")


def _member(item: Any, several: Any) -> Any:
    """Whether an item is in a list, as a comparison with each of its values, joined by OR, would say it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    is_scalar = isinstance(several, pa.Scalar)
    lists = pa.array([several.as_py()], several.type) if is_scalar else several
    rows = len(lists)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
    parents = np.repeat(np.arange(rows), lengths)
    one, other = pc.list_flatten(lists), item if isinstance(item, pa.Scalar) else item.take(pa.array(parents))
    if pa.types.is_null(one.type) or pa.types.is_null(other.type):
        equal = pa.nulls(len(one), pa.bool_())
    else:
        wide = _widest(one.type, other.type)
        one, other = one.cast(wide, safe=False), other.cast(wide, safe=False)
        if pa.types.is_floating(wide):  # NaN is NULL; that of the item already is
            one = pc.if_else(pc.is_nan(one), pa.scalar(None, wide), one)
        equal = pc.equal(one, other)
    unknown = np.bincount(parents[np.asarray(pc.is_null(equal))], minlength=rows) > 0
    found = np.bincount(parents[np.asarray(pc.fill_null(equal, False))], minlength=rows) > 0
    known = pa.array(found, mask=unknown & ~found)
    result = pc.if_else(pc.is_valid(lists), known, pa.scalar(None, pa.bool_()))
    return result[0] if is_scalar else result


def _widest(one: Any, other: Any) -> Any:
    """The type in which items and values of lists are compared."""
    import pyarrow as pa

    if pa.types.is_floating(one) or pa.types.is_floating(other):
        return pa.float64()
    if pa.types.is_integer(one):
        return pa.int64()
    return pa.bool_() if pa.types.is_boolean(one) else pa.string()


def _extreme(name: str) -> Callable[..., Any]:
    return lambda *values: _arrow(name)(*values, skip_nulls=False)


def _part_of_time(name: str, **options: Any) -> Callable[..., Any]:
    return lambda time: _arrow(name)(time, **options).cast("int64")


def _to_time(text: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    has_zone = pc.match_substring_regex(text, r"^.{10}.*(Z|[+-]\d\d(:?\d\d)?)$")
    nothing = pa.scalar(None, pa.string())
    zoned, plain = pc.if_else(has_zone, text, nothing), pc.if_else(has_zone, nothing, text)
    for unit in ("us", "ns"):  # nanoseconds reach only from 1677 to 2262
        try:
            in_utc = zoned.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit))
            return pc.coalesce(in_utc, plain.cast(pa.timestamp(unit)))
        except pa.ArrowInvalid as error:
            failed = error
    wrong = re.search(r"string: (.*) as a scalar", str(failed))
    raise DataError(
        f"to_time is of texts of ISO-8601, and {wrong[1] if wrong else 'a text'} is none",
        code="ACEP-D006",
        hint="write times as 2013-01-31T17:45:00.5Z; or say how they are written: --time-format '%d/%m/%Y %H:%M' "
        "(time_format= in Python)",
    ) from failed


# --- rounding: the kernel does the same, step by step (``kernels/arithmetic.py``) -------------------------

WHOLE = 2.0**52
"""From here on floats have no fraction."""
MOST_DIGITS = 15
"""Digits behind the point that can be asked for."""


def _rounded(step: Callable[[Any], Any]) -> Callable[..., Any]:
    """Floats rounded by ``step``, a function over numpy columns; whole numbers are what they are."""

    def compute(number: Any, digits: int = 0) -> Any:
        import numpy as np
        import pyarrow as pa

        if not pa.types.is_floating(number.type):
            return number
        is_scalar = isinstance(number, pa.Scalar)
        column = pa.array([number.as_py()], pa.float64()) if is_scalar else number
        values = column.to_numpy(zero_copy_only=False)
        scale = float(10**digits)
        with np.errstate(all="ignore"):
            scaled = np.abs(values) * scale if digits or step is _half_up else values
            found = step(scaled) / scale
            if step is _half_up:
                found = np.where(values < 0, -found, found)
            found = np.where(np.abs(scaled) < WHOLE, found + 0.0, values)
        made = pa.array(found, pa.float64(), from_pandas=True)
        return made[0] if is_scalar else made

    return compute


def _half_up(values: Any) -> Any:
    import numpy as np

    whole = np.floor(values)
    return whole + (values - whole >= 0.5)


def _down(values: Any) -> Any:
    import numpy as np

    return np.floor(values)


def _up(values: Any) -> Any:
    import numpy as np

    return np.ceil(values)


def _case(*values: Any) -> Any:
    conditions, results = branches(values)
    found = results[-1]
    for condition, result in reversed([*zip(conditions, results, strict=False)]):
        found = _arrow("if_else")(_arrow("fill_null")(condition, False), result, found)
    return found


def branches(arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The conditions of a CASE, and its values, of which the last one stands behind ELSE.

    Examples
    --------
    >>> branches(["condition", "value", "other condition", "other value", "else"])
    (['condition', 'other condition'], ['value', 'other value', 'else'])
    """
    return arguments[:-1:2], [*arguments[1::2], arguments[-1]]


_ROWS = (
    Function("LIKE", ("string", "string"), "boolean", _like(ignore_case=False), constants=1),
    Function("ILIKE", ("string", "string"), "boolean", _like(ignore_case=True), constants=1),
    Function("IN", ("value", "list"), "boolean", _member),
    Function("starts_with", ("string", "string"), "boolean", _arrow("starts_with"), constants=1),
    Function("ends_with", ("string", "string"), "boolean", _arrow("ends_with"), constants=1),
    Function("contains", ("string", "string"), "boolean", _arrow("match_substring"), constants=1),
    Function("matches", ("string", "string"), "boolean", _arrow("match_substring_regex"), constants=1),
    Function("lower", ("string",), "string", _arrow("utf8_lower")),
    Function("upper", ("string",), "string", _arrow("utf8_upper")),
    Function("trim", ("string",), "string", _arrow("utf8_trim_whitespace")),
    Function("substr", ("string", "number", "number"), "string", _substr, constants=2, optional=1),
    Function("length", ("string",), "number", _length),
    Function("to_time", ("string",), "time", _to_time),
    Function("year", ("time",), "number", _part_of_time("year")),
    Function("month", ("time",), "number", _part_of_time("month")),
    Function("day", ("time",), "number", _part_of_time("day")),
    Function("weekday", ("time",), "number", _part_of_time("day_of_week", count_from_zero=False, week_start=1)),
    Function("hour", ("time",), "number", _part_of_time("hour")),
    Function("minute", ("time",), "number", _part_of_time("minute")),
    Function("second", ("time",), "number", _part_of_time("second")),
    Function("abs", ("number",), "number", _arrow("abs_checked")),
    Function("floor", ("number",), "number", _rounded(_down)),
    Function("ceil", ("number",), "number", _rounded(_up)),
    Function("round", ("number", "number"), "number", _rounded(_half_up), constants=1, optional=1),
    Function("least", ("ordered",), "same", _extreme("min_element_wise"), repeats=True),
    Function("greatest", ("ordered",), "same", _extreme("max_element_wise"), repeats=True),
    Function("CASE", ("boolean", "value"), "same", _case, repeats=True),
    Function("coalesce", ("value",), "same", _arrow("coalesce"), repeats=True),
)
FUNCTIONS: Mapping[str, Function] = {row.name: row for row in _ROWS}
"""By name; names are read in any case."""
CALLED = tuple(name for name in FUNCTIONS if not name.isupper())
"""Those that are called by their names."""
ACROSS_EVENTS = frozenset({"abs", "floor", "ceil", "round", "least", "greatest", "coalesce", "CASE"})
"""Those that are computed of values of several events, too, in conditions."""


def named(word: str) -> str | None:
    """The function that a word before a bracket names, if there is one.

    Examples
    --------
    >>> named("LOWER"), named("lowr"), named("LIKE")
    ('lower', None, None)
    """
    return word.lower() if word.lower() in CALLED else None
