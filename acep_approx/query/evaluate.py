"""Expressions over whole columns, with SQL's three-valued logic.

NULL stands for "not known". A comparison with NULL is NULL, ``FALSE AND NULL`` is FALSE, ``TRUE OR NULL`` is
TRUE. NaN counts as NULL everywhere. ``/`` is true division; division and modulo by zero give NULL; the result
of ``%`` has the sign of the divisor, as in Python. Whole numbers are 64 bits wide and never wrap.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.query.functions import FUNCTIONS, Function, branches
from acep_approx.query.shape import walk
from acep_approx.query.syntax import (
    Aggregate,
    Apply,
    Attribute,
    Between,
    Binary,
    Constant,
    Expression,
    FunctionCall,
    In,
    IsNull,
    Lasting,
    RegisterValue,
    Unary,
    UserFunction,
)

# --- functions of the user's, over columns ----------------------------------------------------------------


_ARROW_TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "truth": pa.bool_(),
    "text": pa.string(),
    "time": pa.timestamp("us"),
    "duration": pa.duration("us"),
}


def called(function: UserFunction, arguments: list[pa.Array | pa.Scalar]) -> pa.Array | pa.Scalar:
    """What a function gives for columns; a scalar where it gets only scalars.

    Parameters
    ----------
    function : UserFunction
    arguments : list of pyarrow.Array or pyarrow.Scalar
        Arrays of one length.

    Raises
    ------
    DataError
        ``ACEP-D203``: the result is not as long as the arguments, or of another kind.
    """
    lengths = [len(argument) for argument in arguments if not isinstance(argument, pa.Scalar)]
    rows = lengths[0] if lengths else 1
    columns = [pa.repeat(one, rows) if isinstance(one, pa.Scalar) else one for one in arguments]
    if rows == 0:  # it need not know what to do with nothing
        return pa.nulls(0, _ARROW_TYPES[function.holds])
    values, is_known = plain_result(function, function.compute(*map(_numpy_column, columns)), rows)
    found = pa.array(values, _ARROW_TYPES[function.holds], mask=~is_known)
    return found if lengths else found[0]


def _numpy_column(column: pa.Array) -> npt.NDArray[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type) and column.null_count:
        column = column.cast(pa.float64())
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def plain_result(function: UserFunction, result: Any, rows: int) -> tuple[npt.NDArray[Any], Bools]:
    """What a function gave, as values of the kind that it holds, and which of them are known.

    Raises
    ------
    DataError
        ``ACEP-D203``: the result is not as long as the arguments, or of another kind.
    """
    found = np.asarray(result)
    if found.shape != (rows,):
        raise DataError(
            f"the function {function.name!r} was given {rows} values per argument, and gave {found.shape} back",
            code="ACEP-D203",
            hint="give one value back for each that comes in",
        )
    try:
        if function.holds == "text":
            return found.astype(object), np.array([value is not None for value in found.tolist()], np.bool_)
        if function.holds in ("time", "duration"):
            times = found.astype("datetime64[us]" if function.holds == "time" else "timedelta64[us]")
            return times, ~np.isnat(times)
        floats = found.astype(np.float64)
        if function.holds == "float":
            return floats, ~np.isnan(floats)
        is_known = ~np.isnan(floats)
        whole = found.astype(np.int64) if found.dtype.kind in "iub" else np.where(is_known, floats, 0).astype(np.int64)
        return (whole.astype(np.bool_) if function.holds == "truth" else whole), is_known
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the function {function.name!r} gave values of type {found.dtype}, and was said to give {function.holds}",
            code="ACEP-D203",
            hint="say what it gives: returns=float, int, bool, str, datetime or timedelta",
        ) from error


Column = Callable[[Any], pa.Array]
Leaf = Attribute | Aggregate | RegisterValue
_COMPARISONS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_EXACT_DIGITS = 15
"""Decimal digits that floats tell apart, whatever they are."""
_CHECKED = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}


def evaluate(expr: Expression, column: Column) -> pa.Array | pa.Scalar:
    """Evaluate an expression for all rows at once.

    Parameters
    ----------
    expr : Expression
        Well typed for the columns (`acep_approx.query.types.check_types`).
    column : callable
        Gives the values of an attribute, an aggregate or a register, one for each row: a
        `pyarrow.Array`, which may be dictionary-encoded. Called once for each distinct one.

    Returns
    -------
    pyarrow.Array or pyarrow.Scalar
        One value for each row; a scalar when the expression names no column. Conditions are boolean with
        nulls: a row qualifies only when its value is true.

    Raises
    ------
    DataError
        ACEP-D201: a whole number passed 64 bits; ACEP-D006: a text that ``to_time`` gets is no time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> price = Attribute("a", None, "price")
    >>> evaluate(Binary(">", price, Constant(10)), lambda _: pa.array([5, None, 20])).to_pylist()
    [False, None, True]
    """
    try:
        return _Evaluator(column).value(expr)
    except pa.ArrowInvalid as error:
        if not any(words in str(error) for words in ("overflow", "not in range", "out of bounds", "truncated")):
            raise
        raise DataError(
            "a whole number in a condition passed the range of 64 bits",
            code="ACEP-D201",
            hint="write one number with a fraction, as in a.x * 2.0, to compute with floating point",
        ) from error


def evaluate_asked(expr: Expression, column: Column, asked: Callable[[], Bools]) -> Any:
    """The same, where only some rows matter: what cannot be computed of another one is no error.

    Parameters
    ----------
    expr, column
        As for ``evaluate``.
    asked : callable
        Gives for each row whether it matters. It is asked where some row cannot be computed, and all others are NULL
        then.

    Raises
    ------
    DataError
        As ``evaluate``, of a row that matters.
    """
    try:
        return evaluate(expr, column)
    except DataError:
        matters = asked()
        if matters.all():
            raise
        places = pa.array(np.flatnonzero(matters))
        found = spread(evaluate(expr, lambda leaf: column(leaf).take(places)), len(places))
        return found.take(pa.array(np.cumsum(matters) - 1, mask=~matters))


def spread(value: Any, rows: int) -> pa.Array:
    """What ``evaluate`` gives as a column; a constant stands in every row."""
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def as_key(expr: Expression, column: Column, rows: int, asked: Callable[[], Bools] | None = None) -> pa.Array:
    """An expression as a column of a key: texts of an attribute stay dictionary-encoded, as they are only looked up.

    ``asked`` as for ``evaluate_asked``.

    Raises
    ------
    DataError
        As ``evaluate``.
    """
    if isinstance(expr, Attribute) and isinstance(values := column(expr), pa.DictionaryArray):
        return _normal(values)
    found = evaluate(expr, column) if asked is None else evaluate_asked(expr, column, asked)
    return spread(found, rows)


def is_true(value: Any, rows: int) -> Bools:
    """For which rows a condition holds, of what ``evaluate`` gives; NULL does not."""
    if isinstance(value, pa.Scalar):
        return np.full(rows, bool(value.as_py()), np.bool_)
    filled = pc.fill_null(value, False) if value.null_count else value
    bits = np.frombuffer(filled.buffers()[1], np.uint8)  # ``to_numpy`` of pyarrow imports pandas
    unpacked = np.unpackbits(bits, bitorder="little", count=filled.offset + len(filled))
    result: Bools = unpacked[filled.offset :].view(np.bool_)
    return result


class _Evaluator:
    """Evaluates over the columns of one batch; each column is fetched and normalised once."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.fetched: dict[Leaf, Any] = {}
        self.zones: dict[Leaf, str | None] = {}

    def value(self, expr: Expression) -> Any:  # noqa: PLR0911, PLR0912  one for each kind of node
        match expr:
            case Constant(value=value):
                return _scalar(value)
            case Lasting():
                return pa.scalar(expr.microseconds, pa.duration("us"))
            case Attribute() | Aggregate() | RegisterValue():
                found = self._fetch(expr)
                return found.dictionary_decode() if isinstance(found, pa.DictionaryArray) else found
            case FunctionCall(function=function, arguments=arguments):
                assert function is not None, "only compiled automata call functions"
                return called(function, [self.value(argument) for argument in arguments])
            case IsNull(operand=Attribute() as leaf, negated=negated) if _is_exact(found := self.column(leaf)):
                return _call("is_valid" if negated else "is_null", found)  # also of what has too many digits
        encoded = self._only_dictionary(expr)
        if encoded is not None:
            return _by_code(expr, encoded)
        match expr:
            case Apply(name=name, arguments=arguments):
                return self._applied(FUNCTIONS[name], arguments)
            case Unary(op="NOT", operand=operand):
                return _call("invert", _boolean(self.value(operand)))
            case Unary(operand=operand):
                return _negative(self.value(operand))
            case IsNull(operand=operand, negated=negated):
                return _call("is_valid" if negated else "is_null", self.value(operand))
            case Binary(op=op, left=left, right=right):
                return _binary(op, self.value(left), self.value(right))
            case Between(operand=operand, low=low, high=high, negated=negated):
                tested = self.value(operand)
                above = _binary(">=", tested, self.value(low))
                return _inverted(_binary("AND", above, _binary("<=", tested, self.value(high))), negated)
            case In(operand=operand, values=values, negated=negated):
                return _inverted(_contained(self.value(operand), [value.value for value in values]), negated)

    def _applied(self, function: Function, arguments: tuple[Expression, ...]) -> Any:
        values: list[Any] = []
        for place, argument in enumerate(arguments):
            if function.is_constant(place):
                assert isinstance(argument, Constant), "checked"
                values.append(argument.value)
                continue
            value = self.value(argument)
            if function.wanted(place) == "time":
                value = _in_zone(value, self._zone_of(argument))
            is_text = function.wanted(place) == "string" and pa.types.is_null(value.type)
            values.append(value.cast(pa.string()) if is_text else value)
        if function.name == "CASE":
            conditions, results = branches(values)
            results = _alike([*results])
            pairs = zip(map(_boolean, conditions), results, strict=False)
            values = [*itertools.chain.from_iterable(pairs), results[-1]]
        elif function.result == "same":
            values = _alike(values)
            if pa.types.is_null(values[0].type):
                return next((value for value in values if not isinstance(value, pa.Scalar)), values[0])
        elif function.name == "IN":
            if pa.types.is_null(values[1].type):
                return values[1].cast(pa.bool_())
        elif pa.types.is_null(values[0].type):  # nothing but NULL: the column gets its type later
            return values[0]
        return _without_nan(function.compute(*values))

    def _fetch(self, leaf: Leaf) -> Any:
        if leaf not in self.fetched:
            column = self.column(leaf)
            self.fetched[leaf] = _normal(column)
            if pa.types.is_timestamp(column.type):
                self.zones[leaf] = column.type.tz
        return self.fetched[leaf]

    def _zone_of(self, expr: Expression) -> str | None:
        """The zone of the first column of times that a time, whose value is known, depends on."""
        return next((self.zones[node] for node in walk(expr) if isinstance(node, Leaf) and node in self.zones), None)

    def _only_dictionary(self, expr: Expression) -> Any:
        """The one column an expression names, if it is one of encoded strings with fewer values than rows."""
        leaf = _only_leaf(expr)
        found = None if leaf is None else self._fetch(leaf)
        return found if isinstance(found, pa.DictionaryArray) and len(found.dictionary) < len(found) else None


@functools.lru_cache(maxsize=4096)
def _only_leaf(expr: Expression) -> Leaf | None:
    if any(isinstance(node, FunctionCall) for node in walk(expr)):  # it may be told how many rows there are
        return None
    leaves = {node for node in walk(expr) if isinstance(node, Leaf)}
    return leaves.pop() if len(leaves) == 1 else None


def _by_code(expr: Expression, encoded: Any) -> Any:
    values = encoded.dictionary
    values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    try:
        result = _Evaluator(lambda _: values).value(expr)
    except DataError:  # of a value that may stand in none of these rows
        return _Evaluator(lambda _: encoded.dictionary_decode()).value(expr)
    # Unsigned 8-bit codes could not hold the number of the added value.
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), len(values) - 1)
    return result.take(codes)


# --- values -----------------------------------------------------------------------------------------------


def _normal(column: Any) -> Any:  # noqa: PLR0911  one for each kind of type
    """Whole numbers as int64, others as float64 without NaN, times in UTC without zone."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    arrow = column.type
    if pa.types.is_dictionary(arrow):
        if pa.types.is_string(arrow.value_type) or pa.types.is_large_string(arrow.value_type):
            return column
        return _normal(column.dictionary_decode())
    if pa.types.is_integer(arrow):
        return column if arrow == pa.int64() else _signed(column)
    if pa.types.is_decimal(arrow):
        return _from_decimals(column)
    if pa.types.is_floating(arrow):
        return _without_nan(column if arrow == pa.float64() else column.cast(pa.float64()))
    if pa.types.is_date(arrow):
        return column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(arrow) and arrow.tz is not None:
        return column.cast(pa.timestamp(arrow.unit))
    return column.cast(pa.string()) if pa.types.is_string_view(arrow) else column


def _is_exact(column: Any) -> bool:
    return bool(pa.types.is_integer(column.type) or pa.types.is_decimal(column.type))


def _signed(column: Any) -> Any:
    """Whole numbers of any size as those of 64 bits with a sign; refuses what these cannot hold."""
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(
            f"a whole number of type {column.type} is 2^63 or more, and queries compute with 64 bits that have a sign",
            code="ACEP-D201",
            hint="write identifiers as text, and other numbers as floats; as a key it is exact",
        ) from error


def _from_decimals(column: Any) -> Any:
    """Decimal numbers as floats; refuses those with so many digits that two of them could become one float."""
    if column.type.precision > _EXACT_DIGITS:
        try:  # few digits behind the point, and few before it: so it mostly is, and this is fast
            column.cast(pa.decimal128(_EXACT_DIGITS, min(max(column.type.scale, 0), 6)))
        except pa.ArrowInvalid as error:
            digits = pc.replace_substring_regex(column.cast(pa.string()), "E.*|[^0-9]", "")
            most = pc.max(pc.utf8_length(pc.utf8_trim(digits, "0"))).as_py()
            if (most or 0) > _EXACT_DIGITS:
                raise DataError(
                    f"a number of type {column.type} has {most} digits, and conditions compute with {_EXACT_DIGITS}",
                    code="ACEP-D202",
                    hint="write identifiers as text, and round other numbers",
                ) from error
    return column.cast(pa.float64())


def _without_nan(value: Any) -> Any:
    if value.type != pa.float64():
        return value
    if isinstance(value, pa.Array) and not value.null_count and not np.isnan(np.from_dlpack(value)).any():
        return value
    bad = pc.is_nan(value)
    if isinstance(value, pa.Scalar):
        return pa.scalar(None, pa.float64()) if bad.as_py() else value
    return pc.if_else(bad, pa.scalar(None, pa.float64()), value) if pc.any(bad).as_py() else value


@functools.lru_cache(maxsize=4096, typed=True)  # 1, 1.0 and TRUE are equal
def _scalar(value: object) -> Any:
    types = {int: pa.int64(), str: pa.string(), float: pa.float64(), bool: pa.bool_()}
    return _without_nan(pa.scalar(value, types.get(type(value))))


def _call(function: str, *values: Any) -> Any:
    """A function of pyarrow; of a value without type (all NULL) the result is NULL."""
    if function not in ("is_null", "is_valid") and any(pa.types.is_null(value.type) for value in values):
        kind = pa.bool_() if function in _COMPARISONS.values() else pa.null()
        rows = [len(value) for value in values if isinstance(value, (pa.Array, pa.ChunkedArray))]
        return pa.nulls(rows[0], kind) if rows else pa.scalar(None, kind)
    return pc.call_function(function, list(values))


def _boolean(value: Any) -> Any:
    return value.cast(pa.bool_()) if pa.types.is_null(value.type) else value


def _inverted(value: Any, negated: bool) -> Any:
    return _call("invert", value) if negated else value


# --- operators --------------------------------------------------------------------------------------------


def _binary(op: str, left: Any, right: Any) -> Any:
    if op in ("AND", "OR"):
        return _call(f"{op.lower()}_kleene", _boolean(left), _boolean(right))
    left, right = _matched(left, right)
    if op in _COMPARISONS:
        return _call(_COMPARISONS[op], left, right)
    if _is_time(left.type) or _is_time(right.type):
        return _of_times(op, left, right)
    if op in _CHECKED:
        return _without_nan(_call(_CHECKED[op], left, right))
    return _divided(op, left, right)


def _matched(left: Any, right: Any) -> tuple[Any, Any]:
    """Both values of one type: a whole number beside a float is made one, a string beside a time a time."""
    first, second = left.type, right.type
    if first == pa.float64() and second == pa.int64():
        return left, right.cast(pa.float64(), safe=False)
    if first == pa.int64() and second == pa.float64():
        return left.cast(pa.float64(), safe=False), right
    if pa.types.is_timestamp(first) and isinstance(right, pa.StringScalar):
        return left, time_of(right.as_py())
    if pa.types.is_timestamp(second) and isinstance(left, pa.StringScalar):
        return time_of(left.as_py()), right
    if pa.types.is_duration(first) and pa.types.is_duration(second) and first != second:
        return left.cast(pa.duration("ns")), right.cast(pa.duration("ns"))
    return left, right


def _alike(values: list[Any]) -> list[Any]:
    """Values of one type, as arguments of a function: that of all of them that are not only NULL."""
    known = [value for value in values if not pa.types.is_null(value.type)]
    if not known:
        return values
    like = functools.reduce(lambda found, value: _matched(found, value)[0], known)
    made = [_matched(like, value)[1] for value in values]
    return [value.cast(like.type) if pa.types.is_null(value.type) else value for value in made]


def _in_zone(value: Any, zone: str | None) -> Any:
    """Times in UTC as what clocks show in a zone."""
    if zone in (None, "UTC") or pa.types.is_null(value.type):
        return value
    return pc.local_timestamp(value.cast(pa.timestamp(value.type.unit, zone)))


def _negative(value: Any) -> Any:
    if pa.types.is_duration(value.type):
        return _call("negate_checked", value.cast(pa.int64())).cast(value.type)
    return _call("negate_checked", value)


def _is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_duration(type_))


def _of_times(op: str, left: Any, right: Any) -> Any:
    """What is computed of times and durations: whole microseconds, or nanoseconds where a column has them.

    Of a product with, or a quotient by, a number the rest is cut off.
    """
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return _call("subtract", left, right)
    left = time_of(left.as_py()) if isinstance(left, pa.StringScalar) else left
    unit = "ns" if any(_is_time(value.type) and value.type.unit == "ns" for value in (left, right)) else "us"
    is_moment = [pa.types.is_timestamp(value.type) for value in (left, right)]
    is_length = [pa.types.is_duration(value.type) for value in (left, right)]
    left, right = (_ticks(value, unit) for value in (left, right))
    if op in ("+", "-"):
        found = _call(_CHECKED[op], left, right)
        return _as(found, pa.timestamp(unit) if is_moment[0] != is_moment[1] else pa.duration(unit))
    if op == "/" and is_length[1]:
        return _divided(op, left, right)
    left, right = _matched(left, right)
    found = _divided(op, left, right) if op == "/" else _call(_CHECKED[op], left, right)
    return _as(_whole(found), pa.duration(unit))


def _ticks(value: Any, unit: str) -> Any:
    """Times and durations as whole numbers of a unit; numbers as they are."""
    if not _is_time(value.type):
        return value
    finer = pa.timestamp(unit) if pa.types.is_timestamp(value.type) else pa.duration(unit)
    return value.cast(finer).cast(pa.int64())


def _as(whole: Any, type_: pa.DataType) -> Any:
    return whole if pa.types.is_null(whole.type) else whole.cast(type_)


def _whole(value: Any) -> Any:
    """Floats as whole numbers, cut towards 0; refuses what 64 bits cannot hold."""
    if value.type != pa.float64():
        return value
    return pc.trunc(_without_nan(value)).cast(pa.int64())


def time_of(text: str) -> Any:
    """An ISO-8601 string as a time in UTC; without an offset it is taken as UTC."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    return pa.scalar(found, pa.timestamp("us"))


def _divided(op: str, left: Any, right: Any) -> Any:
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return _call("divide", left, right)
    if op == "%" and _is_whole(left) and isinstance(right, pa.Scalar) and right.type == left.type and right.as_py():
        return _rest(left, right.as_py())
    if op == "/":
        left, right = (part.cast(pa.float64(), safe=False) for part in (left, right))
    zero = pc.equal(right, pa.scalar(0, right.type))
    right = pc.if_else(zero, pa.scalar(None, right.type), right)
    if op == "/":
        return _without_nan(pc.divide(left, right))
    missing = pc.or_(pc.is_null(left), pc.is_null(right))
    with np.errstate(all="ignore"):
        rest = np.mod(_numpy(left), _numpy(right))
    if isinstance(missing, pa.Scalar):
        return _without_nan(pa.scalar(None if missing.as_py() else rest.item(), left.type))
    return _without_nan(pa.array(rest, left.type, mask=is_true(missing, len(missing))))


def _is_whole(value: Any) -> bool:
    return isinstance(value, pa.Array) and value.type == pa.int64() and not value.null_count


def _rest(left: pa.Array, right: int) -> pa.Array:
    """``%`` by a constant that is not 0: a third of the time of ``np.mod``, and of looking for nulls and zeros."""
    numbers: Ints = _numpy(left)
    with np.errstate(all="ignore"):
        rest = numbers - numbers // right * right
    return pa.Array.from_buffers(pa.int64(), len(left), [None, pa.py_buffer(rest)])


def _numpy(value: Any) -> Any:
    """Values for numpy, with 1 where there is none: the place is masked afterwards."""
    filled = pc.fill_null(value, pa.scalar(1, value.type))
    if isinstance(filled, pa.Scalar):
        return np.asarray(filled.as_py(), dtype=value.type.to_pandas_dtype())
    return np.from_dlpack(filled)


def _contained(tested: Any, values: list[Any]) -> Any:
    """``IN``: as in SQL, what is not in a list that holds NULL is not known to be outside."""
    known = [value for value in values if value is not None]
    kinds: dict[Any, set[type]] = {pa.int64(): {int}, pa.float64(): {int, float}, pa.string(): {str}}
    if not known or not {type(value) for value in known} <= kinds.get(tested.type, set()):
        tests = [_binary("=", tested, _scalar(value)) for value in values]
        return functools.reduce(lambda left, right: _binary("OR", left, right), tests)
    if tested.type == pa.float64():  # 0.0 and -0.0 are equal, but not the same value to look up
        known, tested = [float(value) + 0.0 for value in known], pc.add(tested, 0.0)
    found = pc.is_in(tested, value_set=pa.array(known, tested.type))
    unknown = pa.scalar(None, pa.bool_())
    if len(known) < len(values):
        found = pc.if_else(found, found, unknown)
    return pc.if_else(pc.is_valid(tested), found, unknown)
