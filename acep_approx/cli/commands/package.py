"""``acep package`` and ``acep warm``: the package as a zip for a Spark cluster, kernels compiled for an image."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.options.output import OutputOptions, Quiet
from acep_approx.cli.terminal import amount, say, stages
from acep_approx.errors import UsageError


def package(
    output: Annotated[
        Path,
        typer.Option(
            "-o", metavar="FILE", help="The file to write; a .zip.", rich_help_panel=OutputOptions.panel
        ),
    ] = Path("acep.zip"),
) -> None:
    """Write this package as a zip, to send to a Spark cluster: spark-submit --py-files FILE, or spark.addArtifact.

    A wheel does not work there. What this package needs must be installed on the executors.
    """
    if output.suffix.lower() != ".zip":
        raise UsageError(
            f"the package is a zip, and {str(output)!r} is none by its name",
            code="ACEP-S036",
            hint="name a FILE.zip: Spark takes no other for Python",
        )
    from acep_approx.spark.setup.package import NEEDED, write_package

    number = write_package(output)
    say(f"{output}: {amount(number, 'file')}; executors must have {', '.join(NEEDED)}")


def warm(*, quiet: Quiet = False) -> None:
    """Compile all inner loops now, for an image of a container or for continuous integration.

    Takes about a minute, once per machine and version. Without it the first runs are slower, while another process
    compiles.
    """
    if os.environ.get("ACEP_JIT") == "0" or find_spec("numba") is None:
        raise UsageError(
            "nothing is compiled here: ACEP_JIT=0 says so, or numba is not installed",
            code="ACEP-U211",
            hint="type: ACEP_JIT=1 acep warm",
        )
    from acep_approx.jit.cache import directory
    from acep_approx.kernels import ahead

    folder = directory()
    if folder is None:
        raise UsageError(
            "there is no folder to keep compiled code in: none of the usual places can be written by you alone",
            code="ACEP-U212",
            hint="name one of your own: export NUMBA_CACHE_DIR=/var/cache/acep",
        )
    number = sum(1 for _ in ahead.all_kernels())
    if not quiet:
        say(f"compiling {amount(number, 'kernel')}: about a minute, less where some are compiled already ...")
    with stages(enabled=not quiet) as show:
        for done in ahead.compile_all():
            show("compiling", done / number)
    if not quiet:
        say(f"{amount(number, 'kernel')} in {folder}")
