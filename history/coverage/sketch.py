"""Match maps in bounded memory: folded bitmaps, MinHash and HyperLogLog behind one small protocol.

A match map is a set of bundles. Exact maps are bitarrays, one bit a bundle. A sketch keeps less and answers the same
three questions with a stated error: how many bundles, the union of two maps, how many bundles two maps share.

| map | keeps | bytes | an intersection is | can forget a bundle |
|---|---|---|---|---|
| ``bitarray`` | everything | bundles / 8 | exact | yes: clear its bit |
| `FoldedMap` | bits that hashed bundles fall on | chosen | count + count - union | no |
| `HashedMap` | least hashes (MinHash) | 4 a permutation | from the Jaccard index | no |
| `CountedMap` | greatest ranks (HyperLogLog) | ``2**precision`` | count + count - union | no |

No sketch here can forget one bundle: which other bundles had set the same bit, or had the second least hash, is not
known any more. When old bundles leave the history, build the sketch again from the newer ones (``of``); this costs one
pass over the bundles, not one over the past.

Source: that match maps can be sketched is said in the abstract of Li and Ge, PVLDB 2016; which sketch they used is not
known to us. Ours: linear counting (Whang, Vander-Zanden, Taylor, TODS 1990) with the sampling of virtual bitmaps
(Estan, Varghese, Fisk, IMC 2003); MinHash (Broder 1997) and HyperLogLog++ (Heule, Nunkesser, Hall, EDBT 2013) of the
library datasketch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from bitarray import bitarray
from bitarray.util import count_and

IDS = npt.NDArray[np.int64]
_CHUNK = 1 << 14
"""So many bundles are hashed at a time: their MinHash table stays in cache."""


class Sketch(Protocol):
    """What every sketch of a match map can do. Only sketches of the same kind, size and seed go together."""

    def count(self) -> float:
        """Estimated number of bundles."""

    def union(self, other: Self, /) -> Self:
        """The map of the bundles of either."""

    def overlap(self, other: Self, /) -> float:
        """Estimated number of bundles that both have."""

    def error(self, bundles: float, /) -> float:
        """Relative standard error of `count` for a map of so many bundles."""

    @property
    def bytes(self) -> int:
        """Memory of what is kept, without Python's own."""


MapT = TypeVar("MapT", bound="bitarray | Sketch")
"""A match map: exact, or a sketch."""


def size(bundles: bitarray | Sketch) -> float:
    """Number of bundles of a map.

    Examples
    --------
    >>> size(bitarray("01101"))
    3
    """
    return bundles.count()


def union(one: MapT, other: MapT) -> MapT:
    """The map of the bundles of either of two maps of one kind.

    Examples
    --------
    >>> union(bitarray("0110"), bitarray("1100"))
    bitarray('1110')
    """
    if isinstance(one, bitarray):
        return one | other  # type: ignore[operator]
    return one.union(other)  # type: ignore[arg-type]


def overlap(one: MapT, other: MapT) -> float:
    """Number of bundles that two maps of one kind share.

    Examples
    --------
    >>> overlap(bitarray("0110"), bitarray("1100"))
    1
    """
    if isinstance(one, bitarray):
        return count_and(one, other)  # type: ignore[arg-type]
    return one.overlap(other)  # type: ignore[arg-type]


def ids_of(bundles: bitarray | IDS) -> IDS:
    """Numbers of the bundles of an exact map, in order; of an array of numbers: each once.

    Examples
    --------
    >>> ids_of(bitarray("01101")).tolist()
    [1, 2, 4]
    """
    if isinstance(bundles, bitarray):
        return np.flatnonzero(np.frombuffer(bundles.unpack(), np.uint8))
    return np.unique(np.asarray(bundles, np.int64))


def bitmap(ids: IDS, bits: int) -> bitarray:
    """The exact map over ``bits`` bundles that has the bundles ``ids``.

    Examples
    --------
    >>> bitmap(np.array([1, 2, 4]), 5)
    bitarray('01101')
    """
    flags = np.zeros(bits, np.uint8)
    flags[ids] = 1
    packed = bitarray()
    packed.pack(flags.tobytes())
    return packed


def hashes(ids: IDS, seed: int) -> npt.NDArray[np.uint64]:
    """64 random-looking bits for each id: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), twice.

    The seed comes in between, else it would only shift the ids.
    """
    once = _mixed(ids.astype(np.uint64))
    return _mixed(once ^ _mixed(_mixed(np.array([seed], np.int64).astype(np.uint64))))


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return finalized(words * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019))


def finalized(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finalizer of SplitMix64; of arrays only, in which products wrap around without a warning."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


@dataclass(frozen=True)
class FoldedMap:
    """A match map folded to fewer bits: each bundle is hashed onto one, several bundles may share one.

    With ``share`` below 1 only this share of all bundles is entered, chosen by hash and so the same in all maps:
    a bitmap that is nearly full says nothing. A share of about ``bits / bundles`` served best for choosing.

    Attributes
    ----------
    bits
        One bit per place. It is itself a bitarray, so everything for exact maps works on it: greedy coverage over it
        chooses what greedy coverage by the estimates would choose, since the estimate grows with the bits set.
    share
        Share of bundles that are entered, in (0, 1].
    seed
        Of the hash; maps of different seeds do not go together.

    Examples
    --------
    >>> left, right = (FoldedMap.of(ids, bits=2048, seed=2) for ids in (np.arange(600), np.arange(400, 1000)))
    >>> round(left.count()), round(left.union(right).count()), round(left.overlap(right))
    (601, 998, 202)
    >>> round(left.error(600), 3), left.bytes
    (0.016, 256)
    """

    bits: bitarray
    share: float = 1.0
    seed: int = 0

    @classmethod
    def of(cls, bundles: bitarray | IDS, *, bits: int, share: float = 1.0, seed: int = 0) -> FoldedMap:
        """The sketch of a map, given as a bitarray or as int64 numbers of bundles; linear in the number of bundles.

        Raises
        ------
        ValueError
            ``bits`` below 1, or ``share`` outside of (0, 1].
        """
        if bits < 1 or not 0 < share <= 1:
            raise ValueError(f"a folded map needs bits >= 1 and 0 < share <= 1, not bits={bits}, share={share}")
        hashed = hashes(ids_of(bundles), seed)
        low, high = hashed & np.uint64(0xFFFFFFFF), hashed >> np.uint64(32)
        entered = low[high < round(share * 2.0**32)]
        return cls(bitmap((entered * np.uint64(bits) >> np.uint64(32)).astype(np.int64), bits), share, seed)

    def count(self) -> float:
        """Linear counting: ``-m ln(zeros / m) / share``; a full map counts as one with a single zero."""
        places = len(self.bits)
        return places * math.log(places / max(places - self.bits.count(), 1)) / self.share

    def union(self, other: FoldedMap, /) -> FoldedMap:
        """Bitwise or: exactly the sketch of the union."""
        mine, yours = (len(self.bits), self.share, self.seed), (len(other.bits), other.share, other.seed)
        if mine != yours:
            raise ValueError(f"folded maps of different (bits, share, seed) do not go together: {mine}, {yours}")
        return FoldedMap(self.bits | other.bits, self.share, self.seed)

    def overlap(self, other: FoldedMap, /) -> float:
        """By inclusion and exclusion; the error is that of the three counts, so a small overlap is uncertain."""
        return max(self.count() + other.count() - self.union(other).count(), 0.0)

    def error(self, bundles: float, /) -> float:
        """``sqrt((e^t - t - 1) / (t^2 m) + (1 - share) / (share n))`` with ``t = share n / m`` bundles a bit.

        The first term is linear counting's (theorem of Whang et al., for a map that is not full), the second one is
        the sample's.
        """
        load = self.share * bundles / len(self.bits)
        folding = (math.expm1(load) - load) / (load * load * len(self.bits))
        return math.sqrt(folding + (1 - self.share) / (self.share * bundles))

    @property
    def bytes(self) -> int:
        """An eighth of the bits."""
        return (len(self.bits) + 7) // 8


@dataclass(frozen=True)
class HashedMap:
    """A match map as a MinHash signature, for how alike two maps are; knows the number of its own bundles exactly.

    Attributes
    ----------
    signature
        ``datasketch.MinHash``.
    bundles
        Number of bundles: exact from `of`, estimated after `union`.

    Examples
    --------
    >>> left, right = (HashedMap.of(ids, permutations=256) for ids in (np.arange(600), np.arange(400, 1000)))
    >>> abs(left.jaccard(right) - 0.2) < 0.1, abs(left.union(right).count() - 1000) < 100
    (True, True)
    """

    signature: Any
    bundles: float

    @classmethod
    def of(cls, bundles: bitarray | IDS, *, permutations: int = 128, seed: int = 1) -> HashedMap:
        """The sketch of a map; takes time of the order of bundles times permutations.

        Raises
        ------
        ValueError
            ``permutations`` below 1.
        """
        from datasketch import MinHash  # type: ignore[import-untyped]

        ids = ids_of(bundles)
        signature = MinHash(num_perm=permutations, seed=seed, hashfunc=int)
        short = hashes(ids, seed) & np.uint64(0xFFFFFFFF)
        for start in range(0, len(short), _CHUNK):
            signature.update_batch(short[start : start + _CHUNK].tolist())
        return cls(signature, float(len(ids)))

    def count(self) -> float:
        """Number of bundles."""
        return self.bundles

    def jaccard(self, other: HashedMap, /) -> float:
        """Estimated share of the bundles of either map that both have; standard error at most 0.5 / sqrt(permutations).

        Two empty maps are alike: 1.
        """
        return float(self.signature.jaccard(other.signature))

    def union(self, other: HashedMap, /) -> HashedMap:
        """Least hashes of both: exactly the signature of the union; its count is ``(|A| + |B|) / (1 + Jaccard)``."""
        signature = self.signature.copy()
        signature.merge(other.signature)
        return HashedMap(signature, self.bundles + other.bundles - self.overlap(other))

    def overlap(self, other: HashedMap, /) -> float:
        """``(|A| + |B|) J / (1 + J)``, and never more than the smaller of the two maps."""
        alike = self.jaccard(other)
        shared = (self.bundles + other.bundles) * alike / (1 + alike)
        return min(shared, self.bundles, other.bundles)

    def error(self, bundles: float, /) -> float:  # noqa: ARG002 - the same for every number of bundles
        """``1 / sqrt(permutations)``: an upper bound for unions of many maps (measured: about 0.6 of it).

        A map from `of` is counted exactly, a union of two of them within ``0.36 / sqrt(permutations)``.
        """
        return 1 / math.sqrt(len(self.signature))

    @property
    def bytes(self) -> int:
        """The signature's."""
        return int(self.signature.hashvalues.nbytes)


@dataclass(frozen=True)
class CountedMap:
    """A match map as HyperLogLog registers, for the number of bundles in large unions.

    Attributes
    ----------
    registers
        ``datasketch.HyperLogLogPlusPlus``.
    seed
        Of the hash; maps of different seeds do not go together.

    Examples
    --------
    >>> left, right = CountedMap.of(np.arange(60_000)), CountedMap.of(np.arange(40_000, 100_000))
    >>> abs(left.union(right).count() - 100_000) < 10_000, round(left.error(60_000), 3)
    (True, 0.033)
    """

    registers: Any
    seed: int = 0

    @classmethod
    def of(cls, bundles: bitarray | IDS, *, precision: int = 10, seed: int = 0) -> CountedMap:
        """The sketch of a map, linear in its number of bundles; ``2**precision`` registers, precision 4 to 16.

        Raises
        ------
        ValueError
            ``precision`` outside of 4 to 16.
        """
        from datasketch import HyperLogLogPlusPlus

        counter = HyperLogLogPlusPlus(p=precision)
        hashed = hashes(ids_of(bundles), seed)
        rest = hashed >> np.uint64(precision)
        # The rank is the number of leading zeros of the rest, plus one; datasketch finds it for one hash at a time.
        # The exponent of a float is too high by one where rounding carries, so only the upper half is turned into one.
        high, low = (rest >> np.uint64(32)).astype(np.float64), (rest & np.uint64(0xFFFFFFFF)).astype(np.float64)
        width = np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1])
        rank = (64 - precision - width + 1).astype(np.int8)
        np.maximum.at(counter.reg, (hashed & np.uint64(len(counter) - 1)).astype(np.int64), rank)
        return cls(counter, seed)

    def count(self) -> float:
        """HyperLogLog++: linear counting while many registers are empty, then the harmonic mean without its bias."""
        return float(self.registers.count())

    def union(self, other: CountedMap, /) -> CountedMap:
        """Greater ranks of both: exactly the sketch of the union."""
        if self.seed != other.seed:
            raise ValueError(f"counted maps of different seeds do not go together: {self.seed}, {other.seed}")
        both = self.registers.copy()
        both.merge(other.registers)
        return CountedMap(both, self.seed)

    def overlap(self, other: CountedMap, /) -> float:
        """By inclusion and exclusion: an overlap below the error of the three counts is noise."""
        return max(self.count() + other.count() - self.union(other).count(), 0.0)

    def error(self, bundles: float, /) -> float:  # noqa: ARG002 - the same for every number of bundles
        """``1.04 / sqrt(registers)``, for every number of bundles."""
        return 1.04 / math.sqrt(len(self.registers))

    @property
    def bytes(self) -> int:
        """One per register."""
        return int(self.registers.reg.nbytes)
