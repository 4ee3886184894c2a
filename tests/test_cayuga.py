"""The experiments with many queries, on small streams: they run and find what is right; timings are not asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from acep_approx import compile_query
from experiments.bench_many import PARTS as BENCHES
from experiments.bench_many import Asked as BenchAsked
from experiments.bench_many import Line
from experiments.many_workload import (
    TEMPLATE,
    check,
    constants,
    filled,
    hot_constants,
    ranks,
    shape_constants,
    shapes,
    stream,
)

ROOT = Path(__file__).parent.parent


def test_hot_symbols_come_as_often_as_their_rank_says() -> None:
    counts = np.bincount(ranks(100_000, 100, 1.0, np.random.default_rng(1)), minlength=100)
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.2)
    assert {len({row[name] for row in hot_constants(2_000)}) for name in "pfvw"} == {8}


def test_shapes_are_templates_that_differ() -> None:
    texts = list(shapes(1_000))
    assert len(set(texts)) == 1_000
    for text in texts[::97]:
        assert ":" not in str(compile_query(filled(text, shape_constants(1, 1)[0])))


def test_sets_are_held_against_single_queries() -> None:
    assert check(TEMPLATE, constants(60, symbols=5), stream(3_000, symbols=5)) > 0
    for text in list(shapes(100))[::33]:
        rows = [{n: v for n, v in row.items() if f":{n}" in text} for row in shape_constants(40, 1)]
        check(text, [row | {"s": number % 5} for number, row in enumerate(rows)], stream(2_000, symbols=5), 4)


@pytest.mark.parametrize("name", BENCHES)
def test_each_part_of_bench_many_has_lines(name: str) -> None:
    lines = list(BENCHES[name](BenchAsked(2_000, 1, (30,), 200)))
    assert lines
    assert all(line.value > 0 for line in lines if name != "idle"), lines


def test_what_is_not_reached_is_marked() -> None:
    assert "!" in str(Line("slow", 5, "ms", 4))
    assert "!" not in str(Line("fast", 5, "x", 4, more_is_better=True))


def test_bench_many_runs_from_a_fresh_checkout() -> None:
    command = [sys.executable, "-m", "experiments.bench_many", "rates", "hot", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "100 queries of one template" in done.stdout
    assert "hot symbols" in done.stdout
    command[3:4] = ["nothing"]
    assert "there is no part nothing" in subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr
