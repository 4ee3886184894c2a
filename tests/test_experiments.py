"""The experiments run from a fresh checkout; timings are printed, never asserted."""

from __future__ import annotations

import ast
import importlib
import inspect
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from acep_approx.jit.kernel import Kernel
from acep_approx.query.parser import parse
from experiments.peers import loops
from experiments.sase2008 import workload
from experiments.sase2008.backtrack import backtrack
from experiments.sase2008.workload import PREDICATES, STRATEGIES, StockQuery, stock_stream
from experiments.shedding import estimates
from experiments.shedding.time import measure
from experiments.shedding.workloads import GENERATED, Workload, ds1
from experiments.speed import first_use, plain_runs
from experiments.speed.first_use import CASES
from tests.cases import cases
from tests.command_line import acep
from tests.naive import Binding, expected_matches, partitions

ROOT = Path(__file__).parent.parent
Ran = Callable[..., str]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Runs the program of a module with some words in this process; returns what it prints."""

    def run(module: str, *words: str) -> str:
        monkeypatch.setattr(sys, "argv", [module, *words])
        importlib.import_module(module).main()
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("module", [loops, plain_runs, sys.modules[backtrack.__module__], workload])
def test_kernels_read_nothing_but_items_and_lengths_of_arrays(module: ModuleType) -> None:
    """Interpreted they are given ``memoryview`` objects, which have no ``size``."""
    kernels = [one for one in vars(module).values() if isinstance(one, Kernel)]
    assert kernels
    for one in kernels:
        nodes = ast.walk(ast.parse(inspect.getsource(one.function)))
        read = {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
        assert not read & set(inspect.signature(one.function).parameters), one.__name__


@pytest.mark.slow
def test_bench_cells_prints_its_tables(ran: Ran) -> None:
    """All four claims, and the yardstick gives the same answers as the kernel (asserted inside)."""
    printed = ran("experiments.speed.cells", "--quick")
    for title in ("SEQ of 5 over 10 letters", "Example 1", "arc logs", "end to end"):
        assert title in printed


@pytest.mark.slow
def test_rules_inside_a_budget_print_their_tables(ran: Ran) -> None:
    """No certain match is wrong; why others are not certain is told by rule."""
    printed = ran("experiments.shedding.rule_programs", "--quick", "--only", "bikes")
    assert "inside a budget" in printed
    assert "wanted 30%" in printed
    assert "half of the work" in ran("experiments.shedding.rule_programs", "--quick", "--only", "bikes", "--causes")


@pytest.mark.slow
def test_bench_revisions_prints_its_table(ran: Ran) -> None:
    """All ways give the same results (asserted inside)."""
    printed = ran("experiments.speed.revisions", "--quick")
    for part in ("final, in order", "early, in order", "5% late", "late by 1000", "1% taken back"):
        assert part in printed


@pytest.mark.slow
def test_bench_runs_prints_its_tables_and_leaves_data(ran: Ran, tmp_path: Path) -> None:
    """The engine and the loops by hand give the same answers, merging or not, as the cells do (asserted inside)."""
    printed = ran("experiments.speed.runs", "--quick", "--out", str(tmp_path))
    for title in ("one run-step", "merging, against none", "compiling a query", "real streams"):
        assert title in printed
    assert {"run_steps.csv", "merging.csv", "compiling.csv"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_sase2008_prints_its_tables_and_leaves_data_and_pictures(ran: Ran, tmp_path: Path) -> None:
    """All experiments; the baseline and the engine, merging or not, give the same answers (asserted inside)."""
    printed = ran("experiments.sase2008.evaluation", "--quick", "--out", str(tmp_path))
    for title in [*(f"Expt {number}" for number in range(1, 7)), "Table 2", "Table 3", "Other experiments"]:
        assert title in printed
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"figure_8{letter}.png" for letter in "abcdefg"} <= names
    assert {*(f"expt{number}.csv" for number in range(1, 7)), "slow_rise.csv"} <= names


def test_the_stock_stream_is_as_the_paper_says() -> None:
    """Shares of rising, falling and staying prices; one event in 500 can start a run."""
    events = stock_stream(200_000, 0.7, seed=1).to_pandas()
    assert events["symbol"].value_counts(normalize=True).to_dict() == pytest.approx({1: 0.5, 2: 0.5}, abs=0.01)
    moves = events.groupby("symbol")["price"].diff()[events["price"] > 0].value_counts(normalize=True)
    assert moves.to_dict() == pytest.approx({1.0: 0.7, 0.0: 0.15, -1.0: 0.15}, abs=0.01)
    assert (events["price"] % 500 == 0).mean() == pytest.approx(1 / 500, abs=0.0005)
    assert (events["price"].min(), events["price"].max()) == (0, 999)
    assert (events["volume"].min(), events["volume"].max()) == (1, 1000)


def apart(query: StockQuery, rows: list[dict[str, object]], matches: dict[Binding, int]) -> list[Binding]:
    """What NON OVERLAP leaves, in each partition: the earliest completion, of these the latest start, and so on."""
    chosen = []
    for part in partitions(parse(query.text), rows):
        free = -1
        for bound in sorted(matches, key=lambda bound: (bound[-1][0], -bound[0][0])):
            if bound[0][0] in part and bound[0][0] > free:
                chosen.append(bound)
                free = bound[-1][0]
    return chosen


@pytest.mark.parametrize(("predicate", "strategy", "tail"), list(product(PREDICATES, STRATEGIES, [False, True])))
def test_backtracking_finds_what_the_oracle_finds(predicate: str, strategy: str, tail: bool) -> None:
    dice = random.Random(f"{predicate} {strategy} {tail}")
    found = 0
    for _ in range(cases(30, 10)):
        rows = [
            {
                "ts": i,
                "type": "STOCK",
                "symbol": dice.choice([1, 1, 1, 2]),
                "price": dice.choice([0, 1, 499, 500, 500, 501, 502, 503]),
                "volume": dice.choice([1, 149, 150, 1000]),
            }
            for i in range(10)
        ]
        query = StockQuery(predicate, strategy, dice.choice([3, 6, 10]), tail)
        matches = expected_matches(parse(query.text), rows)
        done = backtrack(pa.Table.from_pylist(rows), query)
        assert (done.matches, done.length) == (len(matches), sum(map(len, matches))), rows
        query = StockQuery(predicate, strategy, query.window, tail, apart=True)
        assert backtrack(pa.Table.from_pylist(rows), query).matches == len(apart(query, rows, matches)), rows
        found += len(matches)
    assert found > 0


@pytest.mark.slow
def test_bench_compile_prints_the_slowest_and_the_largest(tmp_path: Path) -> None:
    """In a process without threads, as it forks others."""
    command = [sys.executable, "-m", "experiments.speed.compiling", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for title in ("the slowest", "the largest"):
        assert title in done.stdout
    assert {"seconds.csv", "memory.csv"} <= {path.name for path in tmp_path.iterdir()}


def test_bench_first_use_prints_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That its commands go well, on few events; what they take is for the real run."""
    whole = first_use.stream
    monkeypatch.setattr(first_use, "stream", lambda events: whole(min(events, 1200)))
    monkeypatch.setattr(first_use, "run", in_this_process)
    monkeypatch.chdir(tmp_path)
    bench = first_use.Bench(tmp_path, 1, 1200)
    rows = [row for case in ("readme", "conditions", "train", "long", "small") for row in CASES[case](bench)]
    assert len(rows) == 10
    assert all(float(measured) >= 0 for _, measured, _ in rows)
    assert [wanted for _, _, wanted in rows[:7]] == ["1.5"] * 5 + ["3"] * 2


def in_this_process(words: tuple[str, ...], *_: object, **_more: str) -> first_use.Seconds:
    """What such a process would do."""
    if words[0] == "-c":
        exec(words[1], {})
    else:
        acep(*words[2:])
    return first_use.Seconds(0.1, 0.2, 0.3)


def test_estimates_of_recall_are_held_against_the_exact_run() -> None:
    stream = ds1(6000, 1)
    work = Workload("small", GENERATED["DS1-near"][1], stream.slice(0, 3000), stream.slice(3000), None)
    results = list(estimates.measure(work, 0, [0]))
    assert [one.budget for one in results] == list(estimates.BUDGETS)
    assert all(0 <= one.low <= one.high <= 1 and 0 < one.recall <= 1 for one in results)
    assert results[0].recall < results[-1].recall
    assert estimates.shown(results).row_count == len(results) + 1


def test_bench_budget_says_what_a_budget_costs(tmp_path: Path) -> None:
    """Also from a history that was kept."""
    stream = ds1(6000, 1)
    work = Workload("small", GENERATED["DS1-near"][1], stream.slice(0, 3000), stream.slice(3000), None)
    for _ in range(2):
        _, ways, steps, times, *_ = (list(column.cells) for column in measure(work, tmp_path, 1, ("10%",)).columns)
        assert ways == ["no audit", "audit", "learning"]
        assert all(0 < float(cell.rstrip("%")) <= 10 for cell in steps)
        assert all(float(cell.rstrip("%")) > 0 for cell in times)
    assert (tmp_path / "small").is_dir()
