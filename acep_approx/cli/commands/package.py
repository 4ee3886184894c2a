"""``acep package``: the package as a zip for the executors of a Spark cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acep_approx.cli.options.output import OutputOptions
from acep_approx.cli.terminal import amount, say
from acep_approx.errors import UsageError


def package(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write; a .zip.", rich_help_panel=OutputOptions.panel
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
