"""The ward of ``experiments/hospital.py``: its rules, its table, and its picture in the docs."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

from experiments.hospital import LEVELS, ROOMS, Ward, picture, run, spans, table

ROOT = Path(__file__).parent.parent
SMALL = Ward(people=3, minutes=6, seed=1)


def by_hand(ward: Ward) -> dict[str, tuple[str, int, int]]:
    """Level, warnings and violations of each person, event by event."""
    ill = dict(ROOMS)
    level: dict[str, list] = {}
    left: dict[str, float] = {}
    for event in ward.events():
        own = level.setdefault(event["hcw"], ["safe", 0, 0])
        now = event["ts"].timestamp()
        match event["type"]:
            case "EXIT":
                left[event["hcw"]] = now
            case "SANITIZE":
                own[0] = "safe"
                left.pop(event["hcw"], None)
            case "ENTER":
                if own[0] == "safe" and now - left.get(event["hcw"], 0) <= 45 and ill[event["room"]]:
                    own[0], own[1] = "warning", own[1] + 1
            case "TOUCH" if own[0] == "warning":
                own[0], own[2] = "violation", own[2] + 1
    return {hcw: tuple(own) for hcw, own in level.items()}


def test_the_rules_say_what_a_loop_over_the_events_says() -> None:
    for ward in (SMALL, Ward(), Ward(people=8, minutes=30, forgets=0.6, seed=9)):
        rows = {row["hcw"]: row for row in run(ward).store["status"].to_pylist()}
        found = {hcw: (row["level"], row["warnings"], row["violations"]) for hcw, row in rows.items()}
        assert found == {hcw: own for hcw, own in by_hand(ward).items() if hcw in rows}
        assert all(own == ("safe", 0, 0) for hcw, own in by_hand(ward).items() if hcw not in rows)
        assert any(violations for _, _, violations in found.values())


def test_spans_are_without_gaps_and_the_picture_has_each() -> None:
    output = run(SMALL)
    shown = ElementTree.fromstring(picture(SMALL, output))
    width, height = (float(part) for part in shown.attrib["viewBox"].split()[2:])
    bars = [node for node in shown.iter() if node.tag.endswith("rect")][len(LEVELS) :]
    wanted = [one for some in spans(SMALL, output).values() for one in some if one[1] > one[0]]
    assert [bar.attrib["class"] for bar in bars] == [level for _, _, level in wanted]
    for some in spans(SMALL, output).values():
        assert (some[0][0], some[-1][1]) == (0, 60 * SMALL.minutes)
        assert all(before[1] == after[0] for before, after in pairwise(some))
    for bar in bars:
        place = {name: float(bar.attrib[name]) for name in ("x", "y", "width", "height")}
        assert place["x"] + place["width"] <= width
        assert place["y"] + place["height"] <= height


def test_the_docs_show_what_it_draws_and_prints() -> None:
    ward = Ward()
    output = run(ward)
    assert (ROOT / "docs" / "images" / "hospital.svg").read_text() == picture(ward, output)
    assert table(ward, output) in (ROOT / "docs" / "how-to" / "rules.md").read_text()


def test_it_runs_from_a_shell(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.hospital", "--people", "2", "--minutes", "5", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "violations" in done.stdout
    assert (tmp_path / "hospital.svg").read_text().endswith("</svg>\n")
