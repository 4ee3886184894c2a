"""Cases of rules with a name and a source, readable by people: the hospital of the paper, and traps that others met.

Source: Wang, Rundensteiner and Ellison, "Active Complex Event Processing over Event Streams", PVLDB 4(10) 2011. Its
Examples 1 to 5 are one stream, exit at 2, enter at 10, exit at 15, in which Q2 never finds its MASK; they are about
what it reads. So a third rule shows what each event reads, and a mask is put on where Q2 shall find something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.rule_worlds import RuleWorld

Row = dict[str, Any]

STATUS = "TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))"
R1 = """RULE r1 ON
  PATTERN SEQ(EXIT a, ~(SANITIZE n), ENTER b)
  WHERE [hcw] AND store.status[b.hcw].level = 'safe'
  WITHIN 45
DO UPDATE status SET level = 'warning' AT (b.hcw) END"""
Q2 = """RULE q2 ON PATTERN SEQ(MASK m, EXIT e) WHERE [hcw] AND store.status[e.hcw].level = 'warning' WITHIN 5"""
SEEN = "RULE seen ON PATTERN ANY e WITHIN 0 RETURN e.ts AS at, store.status[e.hcw].level AS level"
PAPER = f"{STATUS}\n{R1}\n{Q2}\n{SEEN}"


@dataclass(frozen=True)
class RuleCase:
    """A case.

    ``stream``: ``"EXIT@2 ENTER@10:hcw=bob"``, types, times and attributes; who is not named is eve. ``matches`` are
    those of rules by the times of their events, ``returned`` the columns of RETURN, ``changes`` the rules that wrote,
    when, and the values then; ``store`` the rows at the end, by key.
    """

    source: str
    text: str
    stream: str
    matches: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    returned: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    changes: Sequence[tuple[int, str, Row | None]] = ()
    store: dict[str, dict[tuple[Any, ...], Row]] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=dict)

    def world(self) -> RuleWorld:
        """The case as a world, in two batches."""
        rows = []
        for word in self.stream.split():
            place, _, given = word.partition(":")
            type_, tick = place.split("@")
            values = dict(pair.split("=") for pair in given.split(",") if pair)
            rows.append({"ts": int(tick), "type": type_, "hcw": "eve", "room": None} | values)
        kinds = {"ts": pa.int64(), "type": pa.string(), "hcw": pa.string(), "room": pa.string()}
        return RuleWorld(self.text, tuple(rows), self.tables, (len(rows) // 2,), kinds)


WARNED = {"level": "warning"}

CASES = {
    "Example 1: right processing": RuleCase(
        "section 1, Example 1",
        PAPER,
        "EXIT@2 ENTER@10 EXIT@15",
        matches={"r1": [(2, 10)], "q2": []},
        returned={"seen": [(2, "safe"), (10, "safe"), (15, "warning")]},
        changes=[(10, "r1", WARNED)],
        store={"status": {("eve",): WARNED}},
    ),
    "Example 1: with a mask, Q2 recognizes the exit": RuleCase(
        "section 1, Example 1, completed",
        PAPER,
        "EXIT@2 ENTER@10 MASK@12 EXIT@15",
        matches={"r1": [(2, 10)], "q2": [(12, 15)]},
        changes=[(10, "r1", WARNED)],
    ),
    "Example 2: the exit at 2 does not read what was written at 10": RuleCase(
        "section 1, Example 2 (read too late), completed",
        PAPER,
        "MASK@1 EXIT@2 ENTER@10",
        matches={"r1": [(2, 10)], "q2": []},
        returned={"seen": [(1, "safe"), (2, "safe"), (10, "safe")]},
    ),
    "Example 3: the exit at 15 reads what was written at 10": RuleCase(
        "section 1, Example 3 (write too late), completed",
        f"{STATUS}\n{Q2}\n{SEEN}\n{R1}",
        "EXIT@2 MASK@10 ENTER@10 EXIT@15",
        matches={"r1": [(2, 10)], "q2": [(10, 15)]},
        returned={"seen": [(2, "safe"), (10, "safe"), (10, "safe"), (15, "warning")]},
    ),
    "Example 4: each transaction has the table for itself": RuleCase(
        "section 5, Example 4 (sl1; sl2 and xl2; sl3), for two workers",
        PAPER,
        "EXIT@2 EXIT@3:hcw=bob ENTER@10 EXIT@11:hcw=bob EXIT@15 ENTER@16:hcw=bob",
        matches={"r1": [(2, 10), (11, 16), (3, 16)], "q2": []},
        returned={"seen": [(2, "safe"), (3, "safe"), (10, "safe"), (11, "safe"), (15, "warning"), (16, "safe")]},
        changes=[(10, "r1", WARNED), (16, "r1", WARNED), (16, "r1", WARNED)],
        store={"status": {("eve",): WARNED, ("bob",): WARNED}},
    ),
    "Example 5: the versions (1, safe) and (10, warning)": RuleCase(
        "section 5, Example 5 and Figure 4; the next event that writes comes at 18",
        PAPER,
        "EXIT@2 ENTER@10 EXIT@15 ENTER@18 EXIT@18",
        matches={"r1": [(2, 10)], "q2": []},
        returned={"seen": [(2, "safe"), (10, "safe"), (15, "warning"), (18, "warning"), (18, "warning")]},
        tables={"status": [{"hcw": "eve", "level": "safe"}]},
        store={"status": {("eve",): WARNED}},
    ),
    "Q1: who sanitizes, or takes more than 45 seconds, is not warned": RuleCase(
        "section 1, Q1",
        PAPER,
        "EXIT@0 SANITIZE@5 ENTER@10 EXIT@20 ENTER@66 EXIT@70 SANITIZE@71:hcw=bob ENTER@115",
        matches={"r1": [(70, 115)]},
    ),
    "Figure 1: safe, warning, violation, and back": RuleCase(
        "section 1 and appendix G: three levels; the rules are ours",
        f"""{STATUS}
RULE warn ON PATTERN SEQ(EXIT a, ~(SANITIZE n), ENTER b) WHERE [hcw] AND store.status[b.hcw].level = 'safe' WITHIN 45
DO UPDATE status SET level = 'warning' AT (b.hcw); CALL badge(b.hcw, 'yellow') END
RULE violate ON PATTERN SEQ(ENTER a, ~(SANITIZE n)) WHERE [hcw] AND store.status[a.hcw].level = 'warning' WITHIN 10
DO UPDATE status SET level = 'violation' AT (a.hcw); CALL badge(a.hcw, 'red') END
RULE clean ON PATTERN SANITIZE s WHERE store.status[s.hcw].level != 'safe' WITHIN 0
DO UPDATE status SET level = 'safe' AT (s.hcw); CALL badge(s.hcw, 'green') END""",
        "EXIT@1 ENTER@5 ENTER@7 EXIT@17 SANITIZE@17 SANITIZE@20 EXIT@21 ENTER@22 SANITIZE@23",
        # Who enters at 5 reads `safe`. The window of the entry at 7 ends at 17, in which there is a SANITIZE.
        matches={"warn": [(1, 5), (21, 22)], "violate": [], "clean": [(17,), (23,)]},
        changes=[
            (5, "warn", WARNED),
            (17, "clean", {"level": "safe"}),
            (22, "warn", WARNED),
            (23, "clean", {"level": "safe"}),
        ],
    ),
    "A violation is known when its window has closed, and never dated back": RuleCase(
        "ours: Definition 6 with a negation at the end, which the paper excludes",
        f"""{STATUS}
RULE violate ON PATTERN SEQ(ENTER a, ~(SANITIZE n)) WHERE [hcw] WITHIN 10
DO UPDATE status SET level = 'violation' AT (a.hcw) END
{SEEN}""",
        "ENTER@5 EXIT@9 EXIT@15 EXIT@16",
        matches={"violate": [(5,)]},
        returned={"seen": [(5, "safe"), (9, "safe"), (15, "safe"), (16, "violation")]},
        changes=[(15, "violate", {"level": "violation"})],
    ),
    "Two rows of two tables are written for one event": RuleCase(
        "ours, after Esper #155: on-merge into a second table",
        """TABLE inside (hcw text, room text, KEY (hcw))
TABLE room (room text, n int DEFAULT 0, KEY (room))
RULE enter ON PATTERN ENTER a WHERE a.room IS NOT NULL AND NOT EXISTS store.inside[a.hcw] WITHIN 0
DO UPSERT inside SET room = a.room AT (a.hcw); UPDATE room SET n = old.n + 1 AT (a.room) END
RULE leave ON PATTERN EXIT a WHERE a.room IS NOT NULL AND store.inside[a.hcw].room = a.room WITHIN 0
DO DELETE inside AT (a.hcw); UPDATE room SET n = old.n - 1 AT (a.room) END""",
        "ENTER@1:room=icu ENTER@1:room=lab ENTER@2:hcw=bob,room=icu EXIT@3:room=lab EXIT@3:room=icu ENTER@3:room=lab",
        matches={"enter": [(1,), (2,), (3,)], "leave": [(3,)]},
        store={
            "inside": {("bob",): {"room": "icu"}, ("eve",): {"room": "lab"}},
            "room": {("icu",): {"n": 1}, ("lab",): {"n": 1}},
        },
    ),
    "A table of keys alone": RuleCase(
        "ours: a set of who is inside",
        """TABLE inside (hcw text, KEY (hcw))
RULE enter ON PATTERN ENTER a WITHIN 0 DO UPSERT inside AT (a.hcw) END
RULE again ON PATTERN ENTER a WHERE EXISTS store.inside[a.hcw] WITHIN 0
RULE leave ON PATTERN EXIT a WITHIN 0 DO DELETE inside AT (a.hcw) END""",
        "ENTER@1 ENTER@2 EXIT@3 ENTER@4",
        matches={"enter": [(1,), (2,), (4,)], "again": [(2,)], "leave": [(3,)]},
        store={"inside": {("eve",): {}}},
    ),
    "Several writes to a row within one batch": RuleCase(
        "ours, after Siddhi #1243",
        """TABLE door (hcw text, n int, KEY (hcw))
RULE count ON PATTERN ENTER a WITHIN 0 DO UPSERT door SET n = old.n + 1 AT (a.hcw) END
RULE first ON PATTERN ENTER a WHERE NOT EXISTS store.door[a.hcw] WITHIN 0 DO UPSERT door SET n = 1 AT (a.hcw) END
RULE third ON PATTERN ENTER a WHERE store.door[a.hcw].n >= 2 WITHIN 0 DO DELETE door AT (a.hcw) END""",
        "ENTER@1 ENTER@1 ENTER@1 ENTER@1 ENTER@1",
        # The first UPSERT makes a row whose n is NULL, and NULL + 1 is NULL; the rule `first` makes it 1.
        matches={"first": [(1,), (1,)], "third": [(1,)]},
        changes=[
            (1, "count", {"n": None}),
            (1, "first", {"n": 1}),
            (1, "count", {"n": 2}),
            (1, "count", {"n": 3}),
            (1, "third", None),
            (1, "count", {"n": None}),
            (1, "first", {"n": 1}),
            (1, "count", {"n": 2}),
        ],
        store={"door": {("eve",): {"n": 2}}},
    ),
    "Where no two may overlap, a match that needs no negation at the end acts at once": RuleCase(
        "ours: without ENTER nothing is asked of what follows, so nothing is waited for",
        f"""{STATUS}
RULE r ON PATTERN SEQ(EXIT a, ENTER b, ~(SANITIZE n)) WITHIN 5 ERRORS 1 WEIGHTS (a = 2) NON OVERLAP
DO UPDATE status SET level = 'warning' AT (a.hcw) END
{SEEN}""",
        "EXIT@1 ENTER@2 ENTER@3 EXIT@12:hcw=bob",
        matches={"r": [(1,), (12,)]},
        returned={"seen": [(1, "safe"), (2, "warning"), (3, "warning"), (12, "safe")]},
        changes=[(1, "r", WARNED), (12, "r", WARNED)],
    ),
    "A window of events ends with one of a type that no rule asks for, the last of its batch": RuleCase(
        "ours",
        f"""{STATUS}
RULE r ON PATTERN SEQ(EXIT a, ~(SANITIZE n), ENTER? b) WITHIN 2 events
DO UPDATE status SET level = 'warning' AT (a.hcw) END
{SEEN}""",
        "EXIT@1 MASK@2 MASK@3 MASK@4 MASK@5 MASK@5",
        matches={"r": [(1,)]},
        returned={"seen": [(1, "safe"), (2, "safe"), (3, "safe"), (4, "warning"), (5, "warning"), (5, "warning")]},
        changes=[(3, "r", WARNED)],
    ),
    "A toggle: each write decides the next read": RuleCase(
        "ours: the worst case for whoever repairs what it guessed",
        """TABLE light (hcw text, n int DEFAULT 0, KEY (hcw))
RULE on ON PATTERN TOUCH a WHERE store.light[a.hcw].n = 0 WITHIN 0 DO UPDATE light SET n = 1 AT (a.hcw) END
RULE off ON PATTERN TOUCH a WHERE store.light[a.hcw].n = 1 WITHIN 0 DO UPDATE light SET n = 0 AT (a.hcw) END""",
        "TOUCH@1 TOUCH@1 TOUCH@2 TOUCH@3:hcw=bob TOUCH@3",
        matches={"on": [(1,), (2,), (3,)], "off": [(1,), (3,)]},
        store={"light": {("eve",): {"n": 0}, ("bob",): {"n": 1}}},
    ),
}
"""The cases, by name."""
