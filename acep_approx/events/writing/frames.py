"""Tables as frames of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

_FINE = pa.time64("ns")


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A table as a DataFrame; times of day in nanoseconds, which Python has not, stay those of Arrow."""
    import pandas as pd

    frame: pd.DataFrame = table.to_pandas(types_mapper=lambda type_: pd.ArrowDtype(type_) if type_ == _FINE else None)
    return frame
