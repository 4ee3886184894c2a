"""``acep warm``: all kernels compiled ahead of time."""

from __future__ import annotations

import os
from importlib.util import find_spec

from acep_approx.cli.options.output import Quiet
from acep_approx.cli.terminal import amount, say, stages
from acep_approx.errors import UsageError


def warm(*, quiet: Quiet = False) -> None:
    """Compile all inner loops now, for an image of a container or for continuous integration.

    Takes one to two minutes, once per machine and version. Without it the first runs are slower, while another process
    compiles.
    """
    if os.environ.get("ACEP_JIT") == "0" or find_spec("numba") is None:
        raise UsageError(
            "nothing is compiled here: ACEP_JIT=0 says so, or numba is not installed",
            code="ACEP-U211",
            hint="type: ACEP_JIT=1 acep warm",
        )
    from acep_approx.kernels.ahead import all_kernels
    from acep_approx.kernels.cache import directory

    folder = directory()
    if folder is None:
        raise UsageError(
            "there is no folder to keep compiled code in: none of the usual places can be written by you alone",
            code="ACEP-U212",
            hint="name one of your own: export NUMBA_CACHE_DIR=/var/cache/acep",
        )
    kernels = list(all_kernels())
    if not quiet:
        say(f"compiling {amount(len(kernels), 'kernel')}: one to two minutes, less where some are compiled already ...")
    with stages(enabled=not quiet) as show:
        for number, (kernel, args) in enumerate(kernels):
            show(kernel.__name__, number / len(kernels))
            kernel.prepare(args)
    if not quiet:
        say(f"{amount(len(kernels), 'kernel')} in {folder}")
