"""What the program ``acep`` settles for its process, which is its own: a library could not decide any of it.

It is done by ``main`` alone. Commands that run inside another process leave that as it is.
"""

from __future__ import annotations

import codecs
import gc
import json
import os
import sys
from contextlib import suppress

COLLECT_AFTER = 50_000
"""New containers after which garbage is looked for. What is imported makes a hundred thousand, and all of it stays:
looking through it again and again, as after Python's own 700, takes a tenth of a short command."""


class _OwnProcess:
    """Whether this process is the program's own."""

    is_ours = False


def begin() -> None:
    """Take over the process; to be called before numpy and pyarrow are imported."""
    _OwnProcess.is_ours = True
    _open_streams()
    gc.set_threshold(COLLECT_AFTER)
    # as many threads as there are cores, started with numpy, and spinning for a while: what is multiplied here is small
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Arrow's own allocator holds on to what it once had, for each thread apart: twice the memory of a run over a file
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def _open_streams() -> None:
    """Let no file that is opened later take the number of a standard stream that was closed (``>&-``).

    What is written to standard output then fails; words go nowhere; standard input stays missing. What an output cannot
    encode is written as in JSON.
    """
    codecs.register_error(ESCAPES, _escaped)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            there = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_WRONLY)
            if there != number:
                os.dup2(there, number)
                os.close(there)
            if number:
                setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", errors=ESCAPES, closefd=False))
        elif number:
            with suppress(OSError):  # of files that say they can be sought in and cannot; it is set all the same
                stream.reconfigure(errors=ESCAPES)


ESCAPES = "acep.escapes"
"""How texts are written that an output cannot encode."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "it is for writing"
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def mute(number: int) -> None:
    """Let what is written to a standard stream from now on go nowhere, or Python would complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def end_compiler() -> None:
    """End the process that compiles for this one, if there is any: this one was interrupted."""
    background = sys.modules.get("acep_approx.jit.background")
    if background is not None:
        background.close(is_interrupted=True)


def hide_pandas() -> None:
    """Let pyarrow do without pandas, if no one has imported it.

    When pyarrow first gets values of Python or numpy it imports pandas, only to be able to tell its frames from them:
    a fifth of a second, and 30 MB. A command that reads files has no frames. Should something ask for one later
    (``to_pandas``), pyarrow imports pandas then.
    """
    if not _OwnProcess.is_ours or "pandas" in sys.modules:
        return
    import pyarrow as pa

    from acep_approx import without_pandas

    without_pandas.leave_pandas_out()  # first: it would look again

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])  # pyarrow looks for pandas once, and once more where it makes values of Python
        pa.scalar(0, pa.timestamp("ns")).as_py()
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """Finds no pandas, as if it were not installed."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """As Python's import asks each finder."""
        if fullname == "pandas":
            raise ModuleNotFoundError("hidden from pyarrow", name=fullname)
