"""What Spark prints on stderr, without the lines that tell a user nothing.

Spark copies what its Python processes print to the stderr of the JVM, past any log. For each stream one of them says in
plain prints that it starts, what it was given, and that it is done.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHATTER = re.compile(rb"(Starting )?Streaming TransformWithStateInPandas Python worker")


def filter_stderr(spark: SparkSession) -> None:
    """Let what the JVM of a session prints on stderr come through this process, which leaves ``_CHATTER`` out.

    Errors that Spark logs keep their own way, and come through if this process hangs. Nothing changes where there are
    no named pipes (Windows).
    """
    context = spark.sparkContext
    if not hasattr(os, "mkfifo") or context._jvm is None:
        return
    folder = Path(mkdtemp(prefix="acep-stderr-"))
    pipe = folder / "stderr"
    os.mkfifo(pipe)
    Thread(target=_pass_on, args=(pipe,), name="stderr of Spark", daemon=True).start()
    java = context._jvm.java
    java.lang.System.setErr(java.io.PrintStream(java.io.FileOutputStream(str(pipe)), True))  # waits for the thread
    shutil.rmtree(folder)


def _pass_on(pipe: Path) -> None:
    with pipe.open("rb", buffering=0) as lines:
        for line in worth_reading(lines):
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()


def worth_reading(lines: Iterable[bytes]) -> Iterator[bytes]:
    r"""The lines that are not ``_CHATTER``; each of those has an empty line after it.

    Examples
    --------
    >>> chatter = b"Starting Streaming TransformWithStateInPandas Python worker.\n"
    >>> list(worth_reading([chatter, b"\n", b"out of memory\n", b"\n"]))
    [b'out of memory\n', b'\n']
    """
    follows = False
    for line in lines:
        is_chatter = _CHATTER.match(line) is not None
        if not is_chatter and not (follows and line == b"\n"):
            yield line
        follows = is_chatter
