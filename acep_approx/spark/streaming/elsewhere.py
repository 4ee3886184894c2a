"""The driver of a job in another process: by Spark Connect the server calls ``foreachBatch`` in a Python of its own.

That process has what was pickled, and nobody reads what it logs. So it writes what it has to say beside the checkpoint,
where the client finds it: the folder is the same for both, which is checked before a job starts.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from acep_approx.errors import UsageError
from acep_approx.learning.judging import Verdict
from acep_approx.spark.streaming.metrics import Progress
from history.files import read_json, replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.streaming.query import StreamingQuery as ClientQuery
    from pyspark.sql.streaming.query import StreamingQuery

ROOT = "acep_approx"
"""The logger whose lines are handed on."""
TOLD = "told.json"
METADATA = "metadata"
"""The file of a checkpoint in which Spark keeps the id of the query."""
KEPT_LINES = 200
EVERY = 0.5
"""Seconds between two looks at a running stream."""
LAST_NEWS = 5.0
"""Seconds in which what a stream told at its end is handed on."""


class Line(NamedTuple):
    """A line of a log: its number in the job, its level, the name of its logger, its text."""

    number: int
    level: int
    name: str
    text: str


class ServerSide(logging.Handler):
    """What the driver's process on the server has besides the driver: it tells the client, and finds the query.

    Parameters
    ----------
    checkpoint : Path
    control : Path
        The folder of the job beside it.
    level : int
        Of the log of the client.
    """

    def __init__(self, checkpoint: Path, control: Path, level: int) -> None:
        super().__init__()
        self._checkpoint, self._control, self._level = checkpoint, control, level
        self._lines: deque[Line] = deque(maxlen=KEPT_LINES)
        self._query: StreamingQuery | ClientQuery | None = None

    def __reduce__(self) -> tuple[Callable[..., ServerSide], tuple[Path, Path, int]]:
        """Where it is unpickled, it begins."""
        return _begun, (self._checkpoint, self._control, self._level)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line until the client is told."""
        number = self._lines[-1].number + 1 if self._lines else 1
        self._lines.append(Line(number, record.levelno, record.name, record.getMessage()))

    def tell(self, verdict: Verdict | None) -> None:
        """Write what was said, and what learning has come to, where the client finds it."""
        told = {"lines": [*self._lines], "verdict": None if verdict is None else asdict(verdict)}
        replace_file(self._control / TOLD, json.dumps(told).encode())

    def begin(self) -> None:
        """Begin to keep lines, in the process of the server."""
        from pyspark.sql.connect.session import SparkSession as Client

        self._session = Client.getActiveSession()  # in which the query was started; a micro-batch has another
        logger = logging.getLogger(ROOT)
        logger.setLevel(self._level)
        logger.addHandler(self)

    @property
    def query(self) -> StreamingQuery | ClientQuery | None:
        """The query that calls; None where the server does not know it."""
        if self._query is None and self._session is not None:
            self._query = self._session.streams.get(str(read_json(self._checkpoint / METADATA)["id"]))
        return self._query


def _begun(checkpoint: Path, control: Path, level: int) -> ServerSide:
    made = ServerSide(checkpoint, control, level)
    made.begin()
    return made


# --- the client -------------------------------------------------------------------------------------------------------


def check_shared(spark: SparkSession, control: Path) -> None:
    """Refuse a checkpoint whose folder is not the same for this process and for the workers of a server.

    Raises
    ------
    UsageError
        ``ACEP-S052``: it is not.

    Complexity: one small job.
    """
    import pyarrow as pa

    note = control / f"seen-{uuid4().hex}"

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"seen": [note.exists()]})

    try:
        control.mkdir(parents=True, exist_ok=True)
        replace_file(note, b"")
        is_seen = all(row.seen for row in spark.range(0, 1, 1, 1).mapInArrow(look, "seen boolean").collect())
    except OSError:
        is_seen = False
    finally:
        note.unlink(missing_ok=True)
    if not is_seen:
        raise UsageError(
            f"the folder of the checkpoint, {str(control.parent)!r}, is not the same here and on the Spark Connect "
            "server",
            code="ACEP-S052",
            hint="name one that both have, such as a mounted one; or one in an object store that both reach: "
            "--checkpoint s3a://BUCKET/FOLDER",
        )


def log_level() -> int:
    """Return the level from which on lines of our log are wanted in this process."""
    return logging.getLogger(ROOT).getEffectiveLevel()


@dataclass(frozen=True)
class Told:
    """What the driver of a job has told so far."""

    lines: tuple[Line, ...] = ()
    verdict: Verdict | None = None

    @classmethod
    def read(cls, control: Path | None) -> Told:
        """Read it; nothing, where nothing was told yet."""
        place = None if control is None else control / TOLD
        if place is None or not place.exists():
            return cls()
        told: dict[str, Any] = read_json(place)
        verdict = None if told["verdict"] is None else Verdict(**told["verdict"])
        return cls(tuple(Line(*one) for one in told["lines"]), verdict)


@dataclass(eq=False)
class Watch(threading.Thread):
    """Hands on, in the client, the numbers of the micro-batches of a query, and what its driver says.

    It ends with the query. PySpark has a thread for listeners, too, which keeps a process from ending, and prints what
    it meets when a server stops.

    Parameters
    ----------
    watched : StreamingQuery
    control : Path or None
        Where the driver tells; None: it does not.
    sink : callable, optional
        Is told each ``Progress``.
    """

    watched: StreamingQuery
    control: Path | None
    sink: Callable[[Progress], object] | None = None
    _batch: int = field(default=-1, init=False)
    _line: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__init__(name="watch of a stream", daemon=True)

    def run(self) -> None:
        """Look, until the query is over."""
        from pyspark.errors import PySparkException

        try:
            is_over = False
            while not is_over:
                sleep(EVERY)
                is_over = not self.watched.isActive
                self._hand_on()
        except (PySparkException, RuntimeError):  # whoever waits for the query meets it, too; or the process ends
            self._say(Told.read(self.control))

    def _hand_on(self) -> None:
        told = Told.read(self.control)
        self._say(told)
        if self.sink is None:
            return
        for progress in self._news():
            self._batch = progress.batch
            self.sink(replace(progress, learned=told.verdict))

    def _news(self) -> Iterator[Progress]:
        """The micro-batches that were not handed on yet."""
        last = _progress(self.watched.lastProgress)
        if last is None or last.batch <= self._batch:
            return
        found = [last] if last.batch == self._batch + 1 else map(_progress, self.watched.recentProgress)
        yield from (one for one in found if one is not None and one.batch > self._batch)

    def _say(self, told: Told) -> None:
        for line in told.lines:
            if line.number > self._line:
                self._line = line.number
                logging.getLogger(line.name).log(line.level, "%s", line.text)


def _progress(report: Any) -> Progress | None:
    return None if report is None else Progress.of(report)


def finish_watches() -> None:
    """Wait until what streams told at their end is handed on."""
    for thread in threading.enumerate():
        if isinstance(thread, Watch):
            thread.join(LAST_NEWS)
