"""What the program ``acep`` settles for its process, which is its own: a library could not decide any of it.

It is done by ``main`` alone. Commands that run inside another process leave that as it is.
"""

from __future__ import annotations

import gc
import os
import sys

COLLECT_AFTER = 50_000
"""New containers after which garbage is looked for. What is imported makes a hundred thousand, and all of it stays:
looking through it again and again, as after Python's own 700, takes a tenth of a short command."""


class _OwnProcess:
    """Whether this process is the program's own."""

    is_ours = False


def begin() -> None:
    """Take over the process; to be called before numpy and pyarrow are imported."""
    _OwnProcess.is_ours = True
    gc.set_threshold(COLLECT_AFTER)
    # as many threads as there are cores, started with numpy, and spinning for a while: what is multiplied here is small
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Arrow's own allocator holds on to what it once had, for each thread apart: twice the memory of a run over a file
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def leave_pandas_out() -> None:
    """Let pyarrow do without pandas, if no one has imported it.

    When pyarrow first gets values of Python or numpy it imports pandas, only to be able to tell its frames from them:
    a fifth of a second, and 30 MB. A command that reads files has no frames. Should something ask for one later
    (``to_pandas``), pyarrow imports pandas then.
    """
    if not _OwnProcess.is_ours or "pandas" in sys.modules:
        return
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])  # pyarrow looks for pandas once
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """Finds no pandas, as if it were not installed."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """As Python's import asks each finder."""
        if fullname == "pandas":
            raise ModuleNotFoundError("hidden from pyarrow", name=fullname)
