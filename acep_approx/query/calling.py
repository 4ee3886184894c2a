"""Functions of the user's at work: over columns, with what they get and give checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acep_approx.errors import DataError
from acep_approx.query.functions import UserFunction

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.arrays import Bools


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
    import pyarrow as pa

    lengths = [len(argument) for argument in arguments if not isinstance(argument, pa.Scalar)]
    rows = lengths[0] if lengths else 1
    columns = [pa.repeat(one, rows) if isinstance(one, pa.Scalar) else one for one in arguments]
    if rows == 0:  # it need not know what to do with nothing
        return pa.nulls(0, _types()[function.holds])
    values, is_known = plain_result(function, function.compute(*map(_plain, columns)), rows)
    found = pa.array(values, _types()[function.holds], mask=~is_known)
    return found if lengths else found[0]


def _types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    numbers = {"int": pa.int64(), "float": pa.float64(), "truth": pa.bool_()}
    return {**numbers, "text": pa.string(), "time": pa.timestamp("us")}


def _plain(column: pa.Array) -> npt.NDArray[Any]:
    """A column as functions get it: whole numbers with NULL among them as floats."""
    import pyarrow as pa

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
        if function.holds == "time":
            times = found.astype("datetime64[us]")
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
            hint="say what it gives: returns=float, int, bool, str or datetime",
        ) from error
