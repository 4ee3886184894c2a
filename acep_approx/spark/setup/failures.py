"""Errors that come out of Spark: what went wrong in a worker, said as if it had gone wrong here."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from acep_approx.errors import TEMPORARY, AcepError, DataError, QueryError, UsageError

_OURS = re.compile(r"(?:\b(?P<kind>\w+Error): )?(?P<code>ACEP-[A-Z]\d{3}): (?P<first>.*)(?P<rest>(?:\n  .*)*)")
_HINT = "  hint: "
_OF_JAVA = re.compile(r"Py4JJavaError: An error occurred while calling [\w.]+\n: ([\w.$]+: .*)")
_KINDS: dict[str | None, type[AcepError]] = {
    **{kind.__name__: kind for kind in (AcepError, UsageError, QueryError, DataError)},
    "U": UsageError,
    "Q": QueryError,
    "D": DataError,
    "H": DataError,
}
"""Classes of errors, and so exit codes, by name, and by the letter of the code where the text tells no class."""
_MISSING = re.compile(r"No module named '(\w+)")
_UNREAD = re.compile(r"\[FAILED_READ_FILE\.(?P<why>\w+)\] [\w ]+ while reading file (?P<file>.+?)\.\s(?P<said>.*)")
_CAUSE = re.compile(r"^Caused by: (?P<kind>[\w.$]+)(?:: (?P<said>.+))?", re.MULTILINE)
_MOST_LINES = 3
PASSING = (
    *("ConnectException", "Failed to connect", "Connection reset", "NoRouteToHostException", "SocketTimeoutException"),
    *("UnknownHostException", "Py4JNetworkError", "Answer from Java side is empty", "masters are unresponsive"),
    *("org.apache.kafka.common.errors.TimeoutException", "org.apache.kafka.common.errors.DisconnectException"),
    *("StatusCode.UNAVAILABLE", "INVALID_HANDLE.SESSION"),  # a server of Spark Connect that is gone, or is another one
    *("stopped SparkContext", "ExecutorLostFailure", "Master removed our application"),
    *("Unable to execute HTTP request", "SafeModeException", "StandbyException"),  # of S3, and of HDFS that is starting
    *(os.strerror(getattr(errno, name)) for name in TEMPORARY if hasattr(errno, name)),
)
"""Words of Spark, or of a system below it, for what may pass: no connection, lost executors, a full disk, a store that
does not answer."""
_UNANSWERED = re.compile(r'StatusCode\.UNAVAILABLE\s+details = "(?:.*last error: )?(.*)"')
_BESIDE_SERVER = "foreach_batch_worker"
"""The process of a Spark Connect server that has no packages but those installed there."""
_OF_SERVER = "JVM stacktrace:"
"""Where a client of Spark Connect adds the trace of the server to what it says."""
_NOISE = ("at ", "Driver stacktrace", "An error occurred while calling ")

_LOST = re.compile(
    r"Some data may have been lost because they are not available in Kafka.*?(?:partition (\S+)|$)", re.DOTALL
)
"""Words of Spark's reader of Kafka, and later those of its client."""


def explained(error: BaseException) -> AcepError | None:
    r"""Our own error in the text of one that Spark raised.

    Parameters
    ----------
    error : BaseException
        Spark puts the trace of a worker into the message: of tasks, of streams, of table functions.

    Returns
    -------
    AcepError or None
        With code, message, hint and exit code of the error that the worker raised; ``ACEP-D013`` or ``ACEP-D016`` if
        Spark could not read a file; ``ACEP-D057`` if messages are gone that were not read yet; ``ACEP-S034`` if the
        worker has not found a module; None if it was something else.

    Examples
    --------
    >>> trace = "Job aborted.\n  File 'x.py'\nDataError: ACEP-D007: time runs\n  hint: sort\n\tat java.lang.Thread"
    >>> found = explained(RuntimeError(trace))
    >>> print(found, found.exit_code)
    ACEP-D007: time runs
      hint: sort 4
    """
    text = str(error)
    if found := _OURS.search(text):
        lines = [found["first"], *found["rest"].split("\n")[1:]]
        hint = next((number for number, line in enumerate(lines) if line.startswith(_HINT)), len(lines))
        message = "\n".join(lines[:hint]).strip()
        advice = "\n".join(lines[hint:]).removeprefix(_HINT).strip()
        kind = _KINDS.get(found["kind"]) or _KINDS.get(found["code"][5], AcepError)
        ours = kind(message, code=found["code"], hint=advice or None)
        ours.passes = any(words in message for words in PASSING)
        return ours
    if found := _UNREAD.search(text):
        return _unread(found, text)
    if "Traceback" in text and (found := _MISSING.search(text)):
        is_of_server = _BESIDE_SERVER in text
        return AcepError(
            f"the {'server' if is_of_server else 'workers'} of Spark {'does' if is_of_server else 'do'} not find the "
            f"Python package {found[1]!r}",
            code="ACEP-S034",
            hint="a stream needs it on the server and on every executor: pip install acep-approx there"
            if is_of_server
            else "install it on every executor; this package itself can be sent: `acep package -o acep.zip`, then "
            "--py-files acep.zip",
        )
    if found := _LOST.search(text):
        where = f" of {found[1]}" if found[1] else ""
        return DataError(
            f"messages{where} that were not read yet are not there any more",
            code="ACEP-D057",
            hint="they were deleted before they were read: begin with another checkpoint",
        )
    return None


def _unread(found: re.Match[str], text: str) -> DataError:
    """The error that a local run has for a file that cannot be read, or that has a column of another type."""
    path = unquote(urlsplit(found["file"]).path) if found["file"].startswith("file:") else found["file"]
    if found["why"] == "PARQUET_COLUMN_DATA_TYPE_MISMATCH":
        said = found["said"].partition(" SQLSTATE")[0].strip()
        return DataError(f"{path}: {said}", code="ACEP-D016", hint="give each column one type in all files")
    causes = [*_CAUSE.finditer(text, found.end())]
    passes = any(words in cause[0] for cause in causes for words in PASSING)
    again = "try again when the disk, or the server that has it, answers"
    return DataError(
        f"{path}: cannot be read as Parquet" + "".join(f": {cause['said'] or cause['kind']}" for cause in causes[-1:]),
        code="ACEP-D013",
        hint=again if passes else "the file may be damaged or cut off: write it again under the same name",
        passes=passes,
    )


@contextmanager
def clear_errors() -> Iterator[None]:
    """Raise errors of Spark as ours, without pages of Java.

    Raises
    ------
    AcepError
        What ``explained`` found, or ``ACEP-S035`` with the first lines of what Spark says.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise explained(error) or _failed(error) from error


def _failed(error: Exception) -> AcepError:
    of_java = _OF_JAVA.search(str(error))  # below what Python says of a sink that failed
    words = str(error).partition(_OF_SERVER)[0]
    lines = [of_java[1]] if of_java else [line.strip() for line in words.splitlines()]
    if unanswered := _UNANSWERED.search(words):
        lines = [f"the Spark Connect server does not answer any more: {unanswered[1]}"]
    said = [line.removeprefix(": ") for line in lines if line and not line.startswith(_NOISE)][:_MOST_LINES]
    passes = any(words in f"{type(error).__name__}: {error}" for words in PASSING)
    hint = "this may pass: start the same again, or see whether the cluster and its stores answer" if passes else None
    return AcepError("Spark failed: " + "\n  ".join(said or lines[:1]), code="ACEP-S035", hint=hint, passes=passes)
