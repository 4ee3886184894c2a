"""What ``acep run --spark`` is to do, and the session that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acep_approx.cli.options.output import ResultKind

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from acep_approx.spark.plan.matcher import SparkMatcher


@dataclass(frozen=True)
class OnSpark:
    """What ``acep run --spark`` is to do with a program.

    Parameters
    ----------
    matcher : callable
        Makes what finds the matches, for events of these columns.
    kind : ResultKind
        What is put out.
    inputs : list of str
    master : str or None
    reading : dict of str to object
        Arguments of ``read_files``.
    quiet : bool
    """

    matcher: Callable[[pa.Schema], SparkMatcher]
    kind: ResultKind
    inputs: list[str]
    master: str | None
    reading: dict[str, Any]
    quiet: bool

    def session(self, *, streaming: bool = False) -> SparkSession:
        """Spark, started."""
        from acep_approx.spark.setup.session import check_spark, session

        check_spark(streaming=streaming)
        return session(self.master)
