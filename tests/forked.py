"""``acep`` as a process of its own that need not load anything: it is forked from one that has loaded all.

Loading takes more than half of the time of a small run, and the pages of the docs have a hundred of them.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.patience import PATIENCE

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["pandas", "acep_approx.cli.main", "acep_approx.api.compile", "acep_approx.results.tuning"]
)


def acep(words: list[str]) -> tuple[int, str]:
    """Run a command in the folder that this process is in.

    Parameters
    ----------
    words : list of str
        What follows ``acep``.

    Returns
    -------
    (int, str)
        Its exit code, and what it printed on stdout and stderr.
    """
    with TemporaryDirectory() as home:
        printed = Path(home) / "printed"
        process = SERVER.Process(target=_run, args=(words, printed))
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"acep {' '.join(words)}")
        return process.exitcode, printed.read_text(encoding="utf-8")


def _run(words: list[str], printed: Path) -> None:
    with printed.open("wb") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    from acep_approx.cli.main import main

    sys.argv = ["acep", *words]
    main()
