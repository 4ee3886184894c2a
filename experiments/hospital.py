"""Staff of a ward between safe, warning and violation: ``python -m experiments.hospital`` runs ``hospital.acep``.

Source: the application of Wang, Rundensteiner and Ellison, PVLDB 4(10) 2011, section 1 and Figure 1. Its streams are
not public; these are made: people go from room to room, and forget to sanitize as often as they do.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep_approx import compile_rules
from acep_approx.results.rules import RuleOutput

BEGIN = datetime(2024, 5, 1, 8, tzinfo=UTC)
NAMES = ("ann", "bob", "cy", "dee", "eve", "fay", "gus", "hal")
ROOMS = [("hall", False), ("r1", True), ("r2", True), ("r3", True), ("store", False)]
LEVELS = ("safe", "warning", "violation")
RULES = Path(__file__).with_name("hospital.acep")


@dataclass(frozen=True)
class Ward:
    """How many people there are, for how many minutes, and how often each forgets to sanitize before a room."""

    people: int = 5
    minutes: int = 15
    forgets: float = 0.35
    seed: int = 3

    def events(self) -> list[dict[str, Any]]:
        """All events, in order of time."""
        rng = random.Random(self.seed)
        events = [event for number in range(self.people) for event in self._of(_name(number), rng)]
        return sorted(events, key=lambda event: event["ts"])

    def _of(self, hcw: str, rng: random.Random) -> Iterator[dict[str, Any]]:
        """One person on the way."""
        second, room = rng.uniform(0, 30), "hall"
        while second < 60 * self.minutes - 60:
            steps: list[tuple[float, str]] = [(0, "EXIT")]
            if rng.random() > self.forgets:
                steps.append((rng.uniform(2, 6), "SANITIZE"))
            steps.append((rng.uniform(4, 20), "ENTER"))
            following = rng.choice([name for name, _ in ROOMS if name != room])
            if dict(ROOMS)[following]:
                if rng.random() < 0.4:  # there is a dispenser in the room, too
                    steps.append((rng.uniform(5, 15), "SANITIZE"))
                steps.append((rng.uniform(5, 30), "TOUCH"))
            for pause, kind in steps:
                second += pause
                where = room if kind == "EXIT" else following
                yield {"ts": BEGIN + timedelta(seconds=round(second)), "type": kind, "hcw": hcw, "room": where}
            room = following
            second += rng.uniform(20, 90)


def _name(number: int) -> str:
    return NAMES[number] if number < len(NAMES) else f"p{number}"


def run(ward: Ward) -> RuleOutput:
    """Run the rules over a day of a ward."""
    events = pa.Table.from_pylist(ward.events())
    rooms = pa.table({"id": [name for name, _ in ROOMS], "has_patient": [is_ill for _, is_ill in ROOMS]})
    return compile_rules(RULES).run(events, store={"room": rooms})


def spans(ward: Ward, output: RuleOutput) -> dict[str, list[tuple[float, float, str]]]:
    """When each person was at which level: from, to (in seconds), level."""
    end = 60.0 * ward.minutes
    since: dict[str, tuple[float, str]] = {_name(number): (0.0, "safe") for number in range(ward.people)}
    found: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for row in output.changes["status"].to_pylist():
        now = (row["time"] - BEGIN).total_seconds()
        began, level = since[row["hcw"]]
        found[row["hcw"]].append((began, now, level))
        since[row["hcw"]] = (now, row["level"])
    for hcw, (began, level) in since.items():
        found[hcw].append((began, end, level))
    return {hcw: found[hcw] for hcw in since}


def table(ward: Ward, output: RuleOutput) -> str:
    """What became of each person."""
    rows = {row["hcw"]: row for row in output.store["status"].to_pylist()}
    lines = [f"{'':<5}{'warnings':>10}{'violations':>12}{'safe':>8}  now"]
    for hcw, some in spans(ward, output).items():
        row = rows.get(hcw, {"warnings": 0, "violations": 0, "level": "safe"})
        safe = sum(to - since for since, to, level in some if level == "safe") / (60 * ward.minutes)
        lines.append(f"{hcw:<5}{row['warnings']:>10}{row['violations']:>12}{safe:>8.0%}  {row['level']}")
    return "\n".join(lines)


# --- the picture ------------------------------------------------------------------------------------------------

STYLE = (
    "text{font:15px sans-serif;fill:#222}.soft{fill:#59636e;font-size:13px}.mid{text-anchor:middle}"
    ".axis{stroke:#888;fill:none}.safe{fill:#8fd3b6}.warning{fill:#f0b429}.violation{fill:#c0392b}.dot{fill:#0b5d8a}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9aa5b1}.safe{fill:#2b6b53}"
    ".warning{fill:#d99a1c}.violation{fill:#ff7363}.dot{fill:#8cc8f0}}"
)
LEFT, WIDE, TOP, ROW, BAR = 60, 680, 52, 40, 20
"""Where time 0 is, how wide all time is, where the first person is, how far apart they are, how high a bar is."""


def picture(ward: Ward, output: RuleOutput) -> str:
    """The levels of all people over the time, as SVG; dots are where they sanitize."""
    return "\n".join(_picture(ward, output)) + "\n"


def _picture(ward: Ward, output: RuleOutput) -> Iterator[str]:
    all_spans = spans(ward, output)
    bottom = TOP + ROW * len(all_spans)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + 24} {bottom + 30}" role="img">'
        f"<title>Safe, warning or violation: {len(all_spans)} people over {ward.minutes} minutes</title>"
    )
    yield f"<style>{STYLE}</style>"
    x = LEFT
    for level in LEVELS:
        yield f'<rect x="{x}" y="10" width="16" height="16" class="{level}"/><text x="{x + 23}" y="23">{level}</text>'
        x += 120
    yield f'<circle cx="{x + 8}" cy="18" r="4" class="dot"/><text x="{x + 23}" y="23">sanitizes</text>'
    for number, (hcw, some) in enumerate(all_spans.items()):
        y = TOP + ROW * number
        yield f'<text x="8" y="{y + BAR - 5}">{hcw}</text>'
        for since, to, level in some:
            if to > since:
                yield (
                    f'<rect x="{_at(ward, since):.1f}" y="{y}" width="{_at(ward, to) - _at(ward, since):.1f}" '
                    f'height="{BAR}" class="{level}"/>'
                )
    names = list(all_spans)
    for event in ward.events():
        if event["type"] == "SANITIZE":
            x_dot = _at(ward, (event["ts"] - BEGIN).total_seconds())
            yield f'<circle cx="{x_dot:.1f}" cy="{TOP + ROW * names.index(event["hcw"]) + BAR + 7}" r="3" class="dot"/>'
    yield f'<path d="M{LEFT} {bottom}H{LEFT + WIDE}" class="axis"/>'
    for minute in range(0, ward.minutes + 1, max(1, ward.minutes // 5)):
        place = _at(ward, 60 * minute)
        yield f'<path d="M{place:.1f} {bottom}v5" class="axis"/>'
        yield f'<text x="{place:.1f}" y="{bottom + 21}" class="soft mid">08:{minute:02d}</text>'
    yield "</svg>"


def _at(ward: Ward, second: float) -> float:
    """Where a moment is drawn."""
    return LEFT + WIDE * second / (60 * ward.minutes)


def main() -> None:
    """Run the ward, print a table, and draw a picture if a folder is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=5)
    parser.add_argument("--minutes", type=int, default=15, choices=range(2, 60), metavar="MINUTES")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--out", type=Path, help="the folder for hospital.svg")
    given = parser.parse_args()
    ward = Ward(given.people, given.minutes, seed=given.seed)
    output = run(ward)
    print(f"{len(ward.events()):,} events; {output.calls.num_rows} times the colour of a badge changed")
    print(table(ward, output))
    if given.out is not None:
        given.out.mkdir(exist_ok=True)
        (given.out / "hospital.svg").write_text(picture(ward, output), encoding="utf-8")


if __name__ == "__main__":
    main()
