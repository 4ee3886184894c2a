"""The first quarter of an hour of a stranger: ``python -m experiments.first_contact`` prints what the user sees.

Plays mistakes and files as people have them, in a folder of its own: the cases are ``first_contact_cases.py``, the
files ``first_contact_files.py``. Says at the end of which the answer is not what it should be.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from experiments.first_contact_cases import FILES, MISTAKES, Case, Command
from experiments.first_contact_files import write_all

ROOT = Path(__file__).parent.parent
START = "import sys; from acep_approx.cli.main import main; sys.argv[0] = 'acep'; main()"


def run_alone(command: Command, folder: Path) -> tuple[int, str]:
    """Run a command as a user does, in a process of its own: its exit code, and all that it prints."""
    given = (folder / command.stdin).read_bytes() if command.stdin else b""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", START, *command.words],
        cwd=folder,
        env=environment,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def lacking(command: Command, code: int, printed: str) -> list[str]:
    """What a good answer would have, and this one has not.

    Examples
    --------
    >>> lacking(Command(("look", "a.csv"), ("rows", "json|csv")), 0, "12 rows of csv")
    []
    >>> lacking(Command(("look", "a.csv"), ("rows",), 4), 0, "12 lines")
    ["'rows'", 'the exit code is 0, not 4']
    """
    flat = re.sub(r"[\s│╭╮╰╯─┃]+", " ", printed)
    found = [repr(said) for said in command.says if not any(word in flat for word in said.split("|"))]
    if "Traceback (most recent call last)" in printed:
        found.append("no traceback")
    return found if code == command.code else [*found, f"the exit code is {code}, not {command.code}"]


def play(case: Case, folder: Path) -> Iterator[str]:
    """Run the commands of a case, print what is seen, and give what is lacking."""
    print(f"\n=== {case.name}")
    for command in case.commands:
        print(f"\n$ acep {shlex.join(command.words)}")
        code, printed = run_alone(command, folder)
        print(printed.rstrip(), f"\n[exit code {code}]")
        yield from lacking(command, code, printed)


def main() -> int:
    """Play all cases, or those whose names contain a text; the exit code is 1 where an answer lacks something."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="", help="only cases with this in their name")
    wanted = parser.parse_args().name
    poor: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_all(Path(folder))
        for title, cases in (("mistakes", MISTAKES), ("files as people have them", FILES)):
            print(f"\n##### {title}")
            for case in cases:
                if wanted in case.name and (missing := list(play(case, Path(folder)))):
                    poor[case.name] = missing
    print(f"\n##### {len(MISTAKES)} mistakes, {len(FILES)} files; {len(poor)} answers lack something")
    for name, missing in poor.items():
        print(f"{name}: {', '.join(missing)}")
    return bool(poor)


if __name__ == "__main__":
    sys.exit(main())
