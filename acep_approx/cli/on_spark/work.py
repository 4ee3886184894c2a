"""What ``acep run --spark`` is to do, and the session that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acep_approx.cli.options.output import ResultKind
from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import is_address

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from acep_approx.spark.plan.matcher import SparkMatcher
    from acep_approx.spark.sources.files import EventFiles
    from acep_approx.spark.sources.topics import Topics


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
    unit : str or None
        Of times that are numbers.
    quiet : bool
    kafka : sequence of str
        Settings of the client of Kafka.
    schema : path, optional
        A file of events whose columns the messages of topics have.
    """

    matcher: Callable[[pa.Schema], SparkMatcher]
    kind: ResultKind
    inputs: list[str]
    master: str | None
    reading: dict[str, Any]
    unit: str | None
    quiet: bool
    kafka: Sequence[str] = ()
    schema: Path | None = None

    @property
    def of_topics(self) -> bool:
        """Whether events are messages of topics.

        Raises
        ------
        UsageError
            ``ACEP-S070``: some are, and others stand in files.
        """
        found = {is_address(one) for one in self.inputs}
        if len(found) > 1:
            raise UsageError(
                "events are read from files, or from topics, and not from both",
                code="ACEP-S070",
                hint="start a run for each",
            )
        return True in found

    def topics(self, *, checkpoint: Path | None = None) -> Topics:
        """Ask the broker for the topics, and bind the program to the columns of their messages, before Spark starts.

        Parameters
        ----------
        checkpoint : Path, optional
            Of a stream; without one, the messages that are there are a batch.

        Raises
        ------
        AcepError
            As ``check_spark``, ``Topics.open`` and ``take_up``, and what the program lacks in the columns.
        """
        from acep_approx.spark.setup.session import check_spark
        from acep_approx.spark.sources.topics import Topics, take_up

        is_stream = checkpoint is not None
        check_spark(streaming=is_stream)  # the matcher needs PySpark, if no Java
        reading = {**self.reading, "unit": self.unit, "schema": self.schema, "kafka": self.kafka}
        if checkpoint is None:
            topics = Topics.open(self.inputs, is_stream=False, **reading)
        else:
            topics = take_up(self.inputs, str(checkpoint), **reading)
        job = self.matcher(topics.schema).check(topics.schema, is_stream=is_stream)
        return topics.select(job.schema.names)

    def check(self, *, checkpoint: Path | None = None) -> EventFiles | None:
        """Open the files, and bind the program to their columns, before Spark starts, which takes seconds.

        Parameters
        ----------
        checkpoint : Path, optional
            Of a stream: then the input is a folder that gets new files.

        Returns
        -------
        EventFiles or None
            None: they are not on this machine.

        Raises
        ------
        AcepError
            As ``read_files``, ``read_growing``, ``start`` and ``SparkMatcher`` have it.
        """
        from acep_approx.spark.setup.control import control_of
        from acep_approx.spark.sources.files import EventFiles
        from acep_approx.spark.streaming.kept_shards import check_shards
        from history.places import is_remote

        if any(map(is_remote, self.inputs)):
            return None
        if checkpoint is None:
            files = EventFiles.of(self.inputs, **self.reading)
        else:
            files = EventFiles.in_folder(self.inputs[0], **self.reading)
        matcher = self.matcher(files.schema)
        job = matcher.check(files.schema, is_stream=checkpoint is not None)
        if checkpoint is not None and matcher.shards is not None and control_of(checkpoint) is not None:
            check_shards(job.width, checkpoint)
        return files

    def session(self, *, streaming: bool = False) -> SparkSession:
        """Spark, started."""
        from acep_approx.spark.setup.session import check_spark, session

        check_spark(streaming=streaming)
        return session(self.master)
