"""Sketches: the stated errors hold over many seeds, unions are lossless, and what cannot be put together is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bitarray import bitarray
from hypothesis import given
from hypothesis import strategies as st

from history.coverage.sketch import (
    CountedMap,
    FoldedMap,
    HashedMap,
    Sketch,
    bitmap,
    hashes,
    ids_of,
    overlap,
    size,
    union,
)

SEEDS = 60
KINDS: dict[str, Callable[[np.ndarray, int], Sketch]] = {
    "folded": lambda ids, seed: FoldedMap.of(ids, bits=1024, seed=seed),
    "sampled": lambda ids, seed: FoldedMap.of(ids, bits=1024, share=0.25, seed=seed),
    "hashed": lambda ids, seed: HashedMap.of(ids, permutations=128, seed=seed + 1),
    "counted": lambda ids, seed: CountedMap.of(ids, precision=8, seed=seed),
}
ids_lists = st.lists(st.integers(0, 200), max_size=60)


def rms(errors: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


# --- the stated errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bundles", [300, 1500, 4000])
@pytest.mark.parametrize("kind", ["folded", "sampled", "counted"])
def test_the_error_of_a_count_is_the_stated_one(kind, bundles):
    """Root of the mean square over many seeds: 1.35 is beyond chance for 60 of them, and there is no bias."""
    errors = []
    ids = np.arange(bundles) * 3 + 7
    for seed in range(SEEDS):
        sketch = KINDS[kind](ids, seed)
        errors.append(sketch.count() / bundles - 1)
    stated = sketch.error(bundles)
    assert rms(errors) <= 1.35 * stated
    assert abs(np.mean(errors)) <= 4 * stated / SEEDS**0.5
    if kind != "counted":  # its linear counting is better than the stated error when bundles are few
        assert rms(errors) >= 0.65 * stated


def test_the_error_of_a_union_of_many_hashed_maps_is_below_the_stated_one():
    dice = np.random.default_rng(1)
    parts = [np.unique(dice.integers(0, 3000, 150)) for _ in range(20)]
    whole, errors = len(np.unique(np.concatenate(parts))), []
    for seed in range(SEEDS // 2):
        sketches = [KINDS["hashed"](ids, seed) for ids in parts]
        assert [sketch.count() for sketch in sketches] == [len(ids) for ids in parts]
        joined = sketches[0]
        for sketch in sketches[1:]:
            joined = joined.union(sketch)
        errors.append(joined.count() / whole - 1)
    assert 0.1 * joined.error(whole) < rms(errors) <= joined.error(whole)


def test_jaccard_and_pairs_of_hashed_maps_have_the_stated_errors():
    left, right = np.arange(400), np.arange(200, 600)
    alike, pairs, shared = [], [], []
    for seed in range(SEEDS):
        one, other = KINDS["hashed"](left, seed), KINDS["hashed"](right, seed)
        alike.append(one.jaccard(other) - 1 / 3)
        pairs.append(one.union(other).count() / 600 - 1)
        shared.append(one.overlap(other) / 200 - 1)
    assert 0.5 * 0.5 / 128**0.5 < rms(alike) <= 1.35 * 0.5 / 128**0.5
    assert rms(pairs) <= 1.35 * 0.36 / 128**0.5
    assert abs(np.mean(shared)) < 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_overlaps_are_right_on_the_whole(kind):
    left, right = np.arange(500), np.arange(250, 750)
    found = [KINDS[kind](left, seed).overlap(KINDS[kind](right, seed)) for seed in range(SEEDS)]
    stated = 3**0.5 * 750 * KINDS[kind](left, 0).error(750)  # of three counts
    assert abs(np.mean(found) - 250) < 4 * stated / SEEDS**0.5
    assert rms([one - 250 for one in found]) < 1.35 * stated
    apart = [KINDS[kind](left, seed).overlap(KINDS[kind](right + 1000, seed)) for seed in range(5)]
    assert 0 <= min(apart) <= max(apart) < 3.5 * stated


# --- what is lossless -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@given(ids_lists, ids_lists, st.integers(0, 3))
def test_a_union_of_sketches_is_the_sketch_of_the_union(kind, left, right, seed):
    make = KINDS[kind]
    one, other = make(np.array(left, np.int64), seed), make(np.array(right, np.int64), seed)
    whole, joined = make(np.array(left + right, np.int64), seed), one.union(other)
    if isinstance(joined, FoldedMap):
        assert joined == whole
    elif isinstance(joined, HashedMap):
        assert np.array_equal(joined.signature.hashvalues, whole.signature.hashvalues)
        assert max(one.bundles, other.bundles) <= joined.bundles <= one.bundles + other.bundles
    else:
        assert joined.registers == whole.registers
        assert joined.count() == whole.count()


@given(st.lists(st.integers(0, 2**62), max_size=50), st.integers(4, 12), st.integers(0, 5))
def test_registers_are_those_that_datasketch_itself_makes(ids, precision, seed):
    from datasketch import HyperLogLogPlusPlus

    theirs = HyperLogLogPlusPlus(p=precision, hashfunc=int)
    hashed = hashes(np.unique(np.array(ids, np.int64)), seed)
    for value in hashed.tolist():
        theirs.update(value)
    assert CountedMap.of(np.array(ids, np.int64), precision=precision, seed=seed).registers == theirs


@pytest.mark.parametrize("kind", KINDS)
def test_large_maps_in_pieces_are_the_whole(kind):
    ids = np.arange(40_000)
    whole = KINDS[kind](ids, 3)
    joined = KINDS[kind](ids[:15_000], 3).union(KINDS[kind](ids[15_000:], 3))
    assert joined.count() == pytest.approx(whole.count(), rel=0.0 if kind != "hashed" else 0.1)


def test_what_left_the_history_is_gone_after_building_again():
    """Sketches cannot forget; the one of the newer bundles is as if the older ones had never been."""
    ids = np.arange(2000)
    for kind, make in KINDS.items():
        newer = make(ids[ids >= 1500], 1)
        assert abs(newer.count() - 500) <= 4 * 500 * newer.error(500), kind
        assert make(ids, 1).count() > 1500, kind


def test_hashes_of_different_seeds_have_nothing_in_common():
    ids = np.arange(10_000)
    first, second = hashes(ids, 0), hashes(ids, 1)
    assert len(np.unique(first)) == len(ids)
    assert not np.intersect1d(first, second).size
    ones = np.unpackbits(first.view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
    assert np.all(np.abs(ones - 0.5) < 0.025)


# --- small things ---------------------------------------------------------------------------------------------


@given(ids_lists, ids_lists)
def test_exact_maps_speak_the_same_protocol(left, right):
    one, other = (bitmap(np.array(sorted(set(ids)), np.int64), 201) for ids in (left, right))
    assert ids_of(one).tolist() == sorted(set(left)) == ids_of(np.array(left, np.int64)).tolist()
    assert size(one) == len(set(left))
    assert ids_of(union(one, other)).tolist() == sorted({*left, *right})
    assert overlap(one, other) == len({*left} & {*right})
    assert FoldedMap.of(one, bits=64) == FoldedMap.of(np.array(left, np.int64), bits=64)


def test_empty_and_full_maps():
    for kind, make in KINDS.items():
        none, some = make(np.array([], np.int64), 0), make(np.arange(100), 0)
        assert none.count() == none.overlap(none) == none.overlap(some) == 0, kind
        assert none.union(some).count() == some.count(), kind
    full = FoldedMap(bitarray("1" * 64))
    assert full.count() == FoldedMap(bitarray("1" * 63 + "0")).count() == pytest.approx(64 * np.log(64))


def test_sizes_are_what_is_kept():
    assert {kind: make(np.arange(10), 0).bytes for kind, make in KINDS.items()} == {
        "folded": 128,
        "sampled": 128,
        "hashed": HashedMap.of(np.arange(1), permutations=128).signature.hashvalues.nbytes,
        "counted": 256,
    }


def test_what_does_not_go_together_is_refused():
    ids = np.arange(10)
    folded = FoldedMap.of(ids, bits=64)
    for other in (
        FoldedMap.of(ids, bits=65),
        FoldedMap.of(ids, bits=64, seed=1),
        FoldedMap.of(ids, bits=64, share=0.5),
    ):
        with pytest.raises(ValueError, match="do not go together"):
            folded.union(other)
    with pytest.raises(ValueError, match="seeds"):
        CountedMap.of(ids).union(CountedMap.of(ids, seed=1))
    with pytest.raises(ValueError, match="precision"):
        CountedMap.of(ids, precision=5).union(CountedMap.of(ids, precision=6))
    with pytest.raises(ValueError, match="seeds"):
        HashedMap.of(ids).overlap(HashedMap.of(ids, seed=2))
    for bits, share in ((0, 1.0), (8, 0.0), (8, 1.5)):
        with pytest.raises(ValueError, match="folded map needs"):
            FoldedMap.of(ids, bits=bits, share=share)
