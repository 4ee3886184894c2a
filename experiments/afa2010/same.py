"""A query by hand and in the words of the language, the paper's queries as they are, functions: for ``afa2010``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acep_approx import Afa, afa_function, compile_query
from experiments.afa2010.figures import Asked, Way, pushing, rate, ratio, times
from experiments.afa2010.streams import DROP, q1, q2, q3, stock
from experiments.report import Row
from experiments.speed.revisions import WINDOW, Stream

THREE = "q0 -> q1 ON A a\n q1 -> q2 ON B b\n q2 -> done ON C c\n IGNORE q1, q2\n FINAL done"


@dataclass(frozen=True)
class Same:
    """A query in both forms."""

    name: str
    stream: str
    seq: str
    machine: str

    @property
    def texts(self) -> tuple[str, str]:
        """Both."""
        return self.seq, self.machine


def cases() -> list[Same]:
    """One of each kind."""
    return [
        Same(
            "V shapes, contiguity",
            "V shapes",
            f"""PATTERN SEQ(T a, T+ b[], T+ c[])
            WHERE partition_contiguity {{
                a.change < {-DROP} AND b[i].change < 0 AND c[i].change > 0 AND c[c.LEN].price >= a.before
            }} WITHIN {WINDOW}""",
            f"""PATTERN AUTOMATON (REGISTERS top = 0.0
            q0 -> q1 ON T a WHEN change < {-DROP} SET top = before
            q1 -> q2 ON T b WHEN change < 0
            q2 -> q2 ON T b WHEN change < 0
            q2 -> q3 ON T c WHEN change > 0
            q3 -> q3 ON T c WHEN change > 0
            q2 -> done ON T c WHEN change > 0 AND price >= top
            q3 -> done ON T c WHEN change > 0 AND price >= top
            FINAL done) WITHIN {WINDOW}""",
        ),
        Same(
            "next",
            "next",
            f"""PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match {{ [key] AND b.price > a.price }}
            WITHIN {WINDOW}""",
            f"""PATTERN AUTOMATON (REGISTERS low = 0.0
            q0 -> q1 ON A a SET low = price
            q1 -> q2 ON B b WHEN price > low
            q2 -> done ON C c
            IGNORE q1, q2 OTHERWISE
            FINAL done) WHERE [key] WITHIN {WINDOW}""",
        ),
        Same(
            "any",
            "any",
            f"PATTERN SEQ(A a, B b, C c) WHERE [key] AND b.price > a.price WITHIN {WINDOW}",
            f"""PATTERN AUTOMATON (REGISTERS low = 0.0
            q0 -> q1 ON A a SET low = price
            q1 -> q2 ON B b WHEN price > low
            q2 -> done ON C c
            IGNORE q1, q2
            FINAL done) WHERE [key] WITHIN {WINDOW}""",
        ),
        Same(
            "any, one may be missing",
            "any",
            f"PATTERN SEQ(A a, B b, C c) WHERE [key] WITHIN {WINDOW // 10} ERRORS 1",
            f"PATTERN AUTOMATON ({THREE}) WHERE [key] WITHIN {WINDOW // 10} ERRORS 1",
        ),
    ]


def bound(tables: Sequence[pa.Table]) -> Counter[tuple[Any, ...]]:
    """Results without what only one of the forms has."""
    found: Counter[tuple[Any, ...]] = Counter()
    for table in tables:
        names = [name for name in table.column_names if name in ("errors", "start", "end", "key")]
        found.update(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    return found


def same(asked: Asked) -> list[Row]:
    """Both forms of a query, in turns: time of the machine, of that of the other."""
    rows: list[Row] = []
    for case in cases():
        events = Stream.made(case.stream, asked.events, share=0, most=1).events
        for output in ("matches", "points"):
            ways = [
                Way(name, pushing(text, events, output=output))
                for name, text in zip(("seq", "machine"), case.texts, strict=True)
            ]
            taken = times(ways, asked.rounds, bound)
            rows.append(
                {
                    "query": case.name,
                    "output": output,
                    "results": sum(table.num_rows for table in ways[1].ready()()),
                    "engine": ", ".join(dict.fromkeys(compile_query(text).plan.engine for text in case.texts)),
                    "seq": rate(taken, "seq", asked.events),
                    "machine": rate(taken, "machine", asked.events),
                    "ratio": ratio(taken, "machine", "seq"),
                    "wanted": "1.1",
                }
            )
    return rows


# --- the queries of section 6 as they are -----------------------------------------------------------------------------

PAPER_QUERIES = {"Q2": "about 0.2", "Q3": "about 0.35"}


def queries(asked: Asked) -> list[Row]:
    """Throughput of the three queries, in order."""
    rows: list[Row] = []
    cases = [
        *((f"Q1, k = {k}", "Q1", q1(k, DROP, 500), 0.5) for k in (1, 2, 3)),
        ("Q2", "Q2", q2(DROP, 500), 0.7),
        ("Q3", "Q3", q3(500), 0.5),
    ]
    for name, kind, text, rises in cases:
        events = stock(asked.events, rises=rises)
        ways = [
            Way("ordered", pushing(text, events)),
            Way("early", pushing(text, events, emit="early", watermark=500)),
            Way("bare", pushing(text.split(" RETURN ")[0], events)),
        ]
        taken = times(ways, asked.rounds)
        rows.append(
            {"query": name, "paper": PAPER_QUERIES.get(kind)}
            | {way.name: rate(taken, way.name, asked.events) for way in ways}
        )
    return rows


# --- functions --------------------------------------------------------------------------------------------------------


@afa_function(version=1, returns=float)
def share_of(x: Any, y: Any) -> Any:
    """A few nanoseconds per row, in numpy."""
    return x / y


def with_functions(window: int, *, many: bool) -> dict[str, Any]:
    """Machines that do not call, call a function of the event, and call one of the event and a register.

    Parameters
    ----------
    window : int
    many : bool
        Runs wait for a lower price, whatever comes between, so that many are asked at a time; else they end with the
        next tick that does not go on below the first price.
    """
    held = {
        "none": lambda e, r: e.price < r.top,
        "of events": lambda e, r: (e.price < r.top) & (share_of(e.change, e.price) < 1.0),
        "of registers": lambda e, r: share_of(e.price, r.top) < 1.0,
    }
    machines = {}
    for name, condition in held.items():
        afa = Afa(registers={"top": 0.0})
        down = lambda e: e.change < -DROP  # noqa: E731
        if many:
            afa.arc("q0", "q1", on="Tick", when=down, then=lambda e, _: {"top": e.price - 1})
            afa.arc("q1", "done", on="Tick", when=condition).ignore("q1")
        else:
            afa.arc("q0", "q1", on="Tick", when=down, then=lambda e, _: {"top": e.price - e.change})
            afa.arc("q1", "q1", on="Tick", when=condition)
            afa.arc("q1", "done", on="Tick", when=lambda e, r: e.price >= r.top)
        machines[name] = afa.final("done").within(f"{window - 1}")
    return machines


def functions(asked: Asked) -> list[Row]:
    """What a function costs that numpy runs in a few nanoseconds per row."""
    events = stock(asked.events, rises=0.7)
    rows: list[Row] = []
    for many in (False, True):
        made = with_functions(500, many=many)
        taken = times([Way(name, pushing(afa, events)) for name, afa in made.items()], asked.rounds)
        for name, afa in made.items():
            matcher: Any = compile_query(afa).matcher()
            matcher.push(events)
            steps = matcher.progress.steps / asked.events
            rows.append(
                {
                    "function": name,
                    "steps": steps,
                    "rate": rate(taken, name, asked.events),
                    "step_rate": steps * rate(taken, name, asked.events),
                    "ratio": ratio(taken, name, "none"),
                    "wanted": None if name == "none" else "1 M/s",
                }
            )
    return rows
