"""Kernels compiled and not compiled; where compiled code cannot be kept."""

from __future__ import annotations

from pathlib import Path

from tests.cases import cases
from tests.processes import python

MATCH = """
from acep_approx import compile_query
print(len(compile_query("a(b|c)db WITHIN 5 ERRORS 2").match([{"ts": i, "type": t} for i, t in enumerate("cdaeb")])))
"""

RUNS = """
from random import Random
from tests.rich_worlds import rich_world
from tests.runs_engine import agrees
for seed in range({worlds}):
    agrees(rich_world(Random(seed), non_overlap=False))
print(seed + 1)
"""


def test_kernels_run_as_plain_python() -> None:
    """The whole corpus without numba: the same source, for debugging and for line coverage."""
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_corpus.py", ACEP_JIT="0")
    assert done.returncode == 0, done.stdout


def test_plain_python_does_not_import_numba() -> None:
    """ACEP_JIT=0 is the mode without numba."""
    done = python("-c", MATCH + "import sys; print('numba' in sys.modules)", ACEP_JIT="0")
    assert done.stdout.split() == ["5", "False"], done.stderr


def test_compiled_code_that_cannot_be_kept(tmp_path: Path) -> None:
    """No writable place for numba's cache (a read-only container without a home): compiled anew, no crash."""
    nowhere = tmp_path / "file"
    nowhere.write_text("a file, not a folder")
    script = "import numba.core.caching as c; c.CacheImpl._locator_classes = []\n" + MATCH
    done = python("-c", script, HOME=str(nowhere), NUMBA_CACHE_DIR="")
    assert done.stdout.split() == ["5"], done.stderr


CACHED = """
from acep_approx.kernels import jit
from acep_approx.kernels.runs import lineage
import numpy as np
jit._sources.cache_clear()
if {changed}:
    jit._sources = lambda: "other sources"
lineage.not_overlapping(*(np.zeros(1, np.int64) for _ in range(4)), np.zeros(1, np.bool_))
stats = lineage.not_overlapping._compiled.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def test_compiled_code_is_taken_only_for_the_sources_it_was_made_of(tmp_path: Path) -> None:
    """A helper in another file has changed: numba alone would take the old code."""
    runs = [python("-c", CACHED.format(changed=c), NUMBA_CACHE_DIR=str(tmp_path)) for c in (False, False, True)]
    assert [done.stdout.split() for done in runs] == [["0", "1"], ["1", "0"], ["0", "1"]], runs


def test_the_runs_engine_as_plain_python() -> None:
    """Against brute force without numba, where an index out of range is an error and nothing wraps around."""
    worlds = cases(60)
    warnings = ("-W", "error", "-W", "ignore:no event has the type")
    done = python(*warnings, "-c", RUNS.format(worlds=worlds), ACEP_JIT="0")
    assert done.stdout.split() == [str(worlds)], done.stderr
