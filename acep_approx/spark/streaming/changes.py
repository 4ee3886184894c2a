"""What holds now, of results that come early and are taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep_approx.errors import UsageError
from acep_approx.spark.plan.columns import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def net(changes: DataFrame) -> DataFrame:
    """Return the results that were put out and not taken back.

    Parameters
    ----------
    changes : DataFrame
        What a job with ``emit=`` or ``changelog=True`` has written: ``spark.read.parquet(to)``. A batch.

    Returns
    -------
    DataFrame
        The same columns without ``op`` and ``batch``.

    Raises
    ------
    UsageError
        ``ACEP-S077``: it has no column ``op``: nothing was taken back.

    Complexity: one shuffle by all columns.

    Examples
    --------
    >>> net(spark.read.parquet("found")).count()  # doctest: +SKIP
    """
    from pyspark.sql import functions as F

    if "op" not in changes.columns:
        raise UsageError(
            "these are no changes: there is no column 'op' that says what is taken back",
            code="ACEP-S077",
            hint="results that are final need no net(); early ones come from query.spark(emit='early')",
        )
    kept = [column(name) for name in changes.columns if name not in ("op", "batch")]
    comes = F.sum(F.when(F.col("op") == "+I", 1).otherwise(-1))
    counted = changes.groupBy(*kept).agg(comes.alias("_acep_comes"))
    return counted.filter(F.col("_acep_comes") > 0).drop("_acep_comes")
