"""A run over a growing file in a process of its own, until it ends or is killed; ``python -m tests.live_kills FOLDER``.

It goes on from the checkpoint in the folder, and writes one as often as it can.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from tests.processes import ROOT

QUERIES = {
    "runs": ["PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > b.x WITHIN 40"],
    "negation": ["PATTERN SEQ(A a, B b, ~(C c)) WHERE [k] WITHIN 25"],
    "early": ["PATTERN SEQ(A a, B b) WHERE [k] WITHIN 12", "--watermark", "6", "--emit", "early"],
}
EVENTS, CHECKPOINT, FOUND, REJECTS = "events.csv", "checkpoint", "found.csv", "rejects.jsonl"


def lines(number: int) -> list[str]:
    """The lines of the one stream there is; some cannot be read."""
    dice, found, now = Random(5), [], 0
    for row in range(number):
        now += dice.choice((0, 1, 1, 2))
        event = f"{now},{dice.choice('ABC')},{dice.randrange(4)},{dice.random():.3f}\n"
        found.append("broken\n" if row % 97 == 96 else event)
    return found


def arguments(folder: Path, name: str, found: str = FOUND) -> list[str]:
    """The command without what makes it go on."""
    command = ["run", QUERIES[name][0], str(folder / EVENTS), *QUERIES[name][1:], "-o", str(folder / found)]
    rejects = folder / (REJECTS if found == FOUND else f"whole-{REJECTS}")
    return [*command, "--on-malformed", "skip", "--rejects", str(rejects), "--quiet", "--follow"]


def lasting(folder: Path) -> list[str]:
    """What makes it go on."""
    return ["--checkpoint", str(folder / CHECKPOINT), "--checkpoint-every", "1 ms"]


def main() -> None:
    """Run on until the word ``end`` stands in the folder, or for ever."""
    from acep_approx.cli import main as program

    folder, name = Path(sys.argv[1]), sys.argv[2]
    assert ROOT
    sys.argv = ["acep", *arguments(folder, name), *lasting(folder), *json.loads(sys.argv[3])]
    program.main()


if __name__ == "__main__":
    main()
