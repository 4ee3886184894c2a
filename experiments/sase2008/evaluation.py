"""SASE+'s evaluation again: predicates, strategies, windows, backtracking and merging on the runs engine.

``python -m experiments.sase2008`` repeats section 6 of Agrawal, Diao, Gyllstrom and Immerman (SIGMOD 2008), prints one
table per experiment with the paper's figures beside ours, and leaves data (CSV) and pictures (PNG) in a folder. Theirs
are of Java on a Pentium 4: compare shapes and ratios. "Basic" is the runs engine without merging, "merging" with
merging of equal runs. CPU time of this process, one core, medians of interleaved repetitions.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments import report as paper
from experiments.report import Column, Report
from experiments.sase2008.bench import BASIC, MERGING, Bench
from experiments.sase2008.workload import PREDICATES, STRATEGIES, SYMBOLS, StockQuery

RISE, SLOW_RISE = 0.7, 0.55
WINDOW = 500
DISTINCT = [("p1", "s3"), ("p2", "s2"), ("p2", "s3"), ("p3", "s2"), ("p3", "s3")]
"""Predicates and strategies without p1s2, which is the same as p1s3."""
SKIPPING = [("p1", "s3"), ("p2", "s3"), ("p3", "s3")]
QUERY = Column("query", "query")


def share(part: float, whole: float) -> float:
    """In per cent; none of nothing."""
    return 100 * part / whole if whole else 0.0


def predicates(bench: Bench, report: Report) -> None:
    """Experiment 1, figure 8(a), table 2: each predicate with each strategy."""
    rows = []
    for predicate in PREDICATES:
        for strategy in STRATEGIES:
            query = StockQuery(predicate, strategy, WINDOW)
            whole = bench.engine(query)[BASIC]
            detected = bench.engine(query, listing=False)[BASIC]
            rows.append(
                {
                    "query": query.name,
                    "basic": whole.rate,
                    "matches": whole.found.matches,
                    "length": whole.found.length / max(whole.found.matches, 1),
                    "paper_length": paper.LENGTHS.get(query.name),
                    "runs": SYMBOLS * whole.found.steps / len(bench.stream(WINDOW)),
                    "paper_runs": paper.RUNS.get(query.name),
                    "construction": max(share(whole.seconds - detected.seconds, whole.seconds), 0.0),
                    "paper_construction": paper.CONSTRUCTION.get(query.name),
                }
            )
    columns = [
        QUERY,
        Column("basic", "events/s", ",.0f"),
        Column("matches", "matches", ",d"),
        Column("length", "match length", ".1f"),
        Column("paper_length", "paper", "g"),
        Column("runs", "runs", ".3f"),
        Column("paper_runs", "paper", "g"),
        Column("construction", "construction %", ".0f"),
        Column("paper_construction", "paper", "g"),
    ]
    note = f"runs = live runs of all {SYMBOLS} symbols per time step"
    report.table("expt1", f"Expt 1, Table 2: predicate and strategy, basic, W = {WINDOW}", rows, columns, note)
    report.bars("figure_8a", "Expt 1: predicate and strategy", rows, {"basic": "basic"})


def windows(bench: Bench, report: Report, sizes: list[int]) -> None:
    """Experiment 2, figures 8(b) and 8(c): cost over the window, and over the complexity of the output."""
    rows = []
    for kind in DISTINCT:
        for window in sizes:
            query = StockQuery(*kind, window)
            basic = bench.engine(query, merges=(BASIC,))[BASIC]
            events = len(bench.stream(window))
            rows.append(
                {
                    "query": query.name,
                    "window": window,
                    "basic": basic.rate,
                    "cost": 1e9 * basic.seconds / events,
                    "complexity": basic.found.length / events,
                    "unit": 1e9 * basic.seconds / max(basic.found.length, 1),
                    "runs": SYMBOLS * basic.found.steps / events,
                    "length": basic.found.length / max(basic.found.matches, 1),
                }
            )
    window_column, complexity = Column("window", "W (events)", ",d"), Column("complexity", "output/event", ",.2f")
    rate, cost = Column("basic", "events/s", ",.0f"), Column("cost", "ns/event", ",.0f")
    columns = [
        QUERY,
        window_column,
        rate,
        Column("runs", "runs", ".3f"),
        Column("length", "match length", ".1f"),
        complexity,
        cost,
        Column("unit", "ns/unit of output", ",.1f"),
    ]
    note = "output = lengths of all matches together; the paper: cost is linear in it"
    report.table("expt2", "Expt 2: window, basic", rows, columns, note)
    report.lines("figure_8b", "Expt 2: window", rows, window_column, rate, log=True)
    report.lines("figure_8c", "Expt 2: cost of the output", rows, complexity, cost, log=False)


def backtracking(bench: Bench, report: Report, *, apart: bool) -> None:
    """Experiment 3 (figure 8(d), all results) or 4 (figure 8(e), NON OVERLAP): basic against backtracking."""
    kinds = [(*kind, False) for kind in DISTINCT]
    if apart:
        kinds = [("p3", strategy, tail) for tail in (False, True) for strategy in STRATEGIES]
    factors = paper.APART_FACTOR if apart else paper.BACKTRACK_FACTOR
    rows = []
    for predicate, strategy, tail in kinds:
        query = StockQuery(predicate, strategy, WINDOW, tail=tail, apart=apart)
        basic, baseline = bench.engine(query)[BASIC], bench.backtracking(query)
        events = len(bench.stream(WINDOW))
        rows.append(
            {
                "query": query.name,
                "matches": basic.found.matches,
                "basic": basic.rate,
                "backtrack": baseline.rate,
                "factor": basic.rate / baseline.rate,
                "paper_factor": factors.get(query.name),
                "steps": basic.found.steps / events,
                "reads": baseline.found.reads / events,
                "reprocessed": baseline.found.reprocessed / events,
                "paper_reprocessed": None if apart else paper.REPROCESSED.get(query.name),
            }
        )
    columns = [
        QUERY,
        Column("matches", "matches", ",d"),
        Column("basic", "basic events/s", ",.0f"),
        Column("backtrack", "backtrack events/s", ",.0f"),
        Column("factor", "factor", ".2f"),
        Column("paper_factor", "paper"),
        Column("steps", "steps/event", ".3f"),
        Column("reads", "reads/event", ".3f"),
        Column("reprocessed", "read again", ".2f"),
        Column("paper_reprocessed", "paper", "g"),
    ]
    note = "backtracking is a kernel written for this template; steps of basic and its reads are the fair comparison"
    number, figure, what = (4, "figure_8e", "NON OVERLAP") if apart else (3, "figure_8d", "all results")
    title = f"Expt {number}: basic and backtracking, {what}"
    report.table(f"expt{number}", f"{title}, W = {WINDOW}", rows, columns, note)
    report.bars(figure, title, rows, {"basic": "basic", "backtrack": "backtracking"})


def merging(bench: Bench, report: Report) -> None:
    """Experiment 5, figure 8(f): what merging of equal runs gains, matches and all."""
    rows = []
    for predicate, strategy in DISTINCT:
        query = StockQuery(predicate, strategy, WINDOW)
        timed = bench.engine(query)
        basic, merged = timed[BASIC], timed[MERGING]
        rows.append(
            {
                "query": query.name,
                "basic": basic.rate,
                "merging": merged.rate,
                "gain": merged.rate / basic.rate,
                "paper_gain": paper.MERGING_GAIN.get(query.name),
                "basic_peak": basic.found.peak,
                "merging_peak": merged.found.peak,
            }
        )
    columns = [
        QUERY,
        Column("basic", "basic events/s", ",.0f"),
        Column("merging", "merging events/s", ",.0f"),
        Column("gain", "gain", ".2f"),
        Column("paper_gain", "paper", "g"),
        Column("basic_peak", "basic: most runs", ",d"),
        Column("merging_peak", "merging: most runs", ",d"),
    ]
    report.table("expt5", f"Expt 5: merging, all results, W = {WINDOW}", rows, columns)
    report.bars("figure_8f", "Expt 5: merging", rows, {"basic": "basic", "merging": "merging"})


def merging_windows(bench: Bench, report: Report, sizes: list[int]) -> None:
    """Experiment 6, figure 8(g), table 3: what merging gains without construction, over the window."""
    rows = []
    for kind in SKIPPING:
        for window in sizes:
            query = StockQuery(*kind, window)
            timed = bench.engine(query, listing=False)
            basic, merged = timed[BASIC], timed[MERGING]
            rows.append(
                {
                    "query": query.name,
                    "window": window,
                    "basic": basic.rate,
                    "merging": merged.rate,
                    "gain": merged.rate / basic.rate,
                    "paper_gain": paper.DETECTION_GAIN,
                    "saved": share(basic.found.steps - merged.found.steps, basic.found.steps),
                    "paper_saved": paper.MERGED[window][query.name],
                    "made": merged.found.made,
                    "merged": merged.found.merged,
                }
            )
    window_column, gain = Column("window", "W (events)", ",d"), Column("gain", "gain", ".2f")
    columns = [
        QUERY,
        window_column,
        Column("basic", "basic events/s", ",.0f"),
        Column("merging", "merging events/s", ",.0f"),
        gain,
        Column("paper_gain", "paper"),
        Column("saved", "runs merged %", ".1f"),
        Column("paper_saved", "paper", ".1f"),
    ]
    note = "runs merged = run-steps that merging saves, of those without"
    report.table("expt6", "Expt 6, Table 3: merging, detection only", rows, columns, note)
    report.lines("figure_8g", "Expt 6: gain of merging", rows, window_column, gain, log=False)


def slow_rise(bench: Bench, slow: Bench, report: Report) -> None:
    """The paper's "other experiments": a price that rises less often."""
    rows = []
    for predicate, strategy in DISTINCT:
        query = StockQuery(predicate, strategy, WINDOW)
        row: dict[str, object] = {"query": query.name}
        for one in (bench, slow):
            timed, baseline = one.engine(query), one.backtracking(query)
            basic, merged = timed[BASIC], timed[MERGING]
            row[f"basic_{one.rise}"] = basic.rate
            row[f"backtrack_{one.rise}"] = basic.rate / baseline.rate
            row[f"merging_{one.rise}"] = merged.rate / basic.rate
        rows.append(row)
    columns = [QUERY]
    kinds = {
        "basic": ("events/s", ",.0f"),
        "backtrack": ("of backtracking", ".2f"),
        "merging": ("merging gains", ".2f"),
    }
    for key, (heading, form) in kinds.items():
        columns += [Column(f"{key}_{one.rise}", f"{heading}, p={one.rise}", form) for one in (bench, slow)]
    note = "the paper: p1 the same, p2 and p3 faster; less ahead of backtracking; merging gains more"
    report.table("slow_rise", f"Other experiments: prices that rise less often, W = {WINDOW}", rows, columns, note)


def main() -> None:
    """Run all experiments."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("results/sase2008"), help="folder for data and pictures")
    options.add_argument("--quick", action="store_true", help="short streams, two windows: a first look")
    given = options.parse_args()
    stretch, rounds, sizes = (4, 1, [500, 1000]) if given.quick else (200, 3, [500, 1000, 1500, 2000])
    report = Report(given.out)
    bench, slow = Bench(stretch, RISE, rounds), Bench(stretch, SLOW_RISE, rounds)
    predicates(bench, report)
    windows(bench, report, sizes)
    backtracking(bench, report, apart=False)
    backtracking(bench, report, apart=True)
    merging(bench, report)
    merging_windows(bench, report, sizes)
    slow_rise(bench, slow, report)
    report.console.print(f"data and pictures: {given.out}")
