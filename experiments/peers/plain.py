"""What a good Python programmer would write for one query each, in ten or twenty lines of plain Python.

One loop over lists, and lists of tuples. A match is the tuple of the rows of its events, in the order of the pattern.
All conditions are part of the loop; no function knows more than its one query. What is too old is dropped where a list
is gone through anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.peers.workloads import RISING, START_EVERY, SYMBOLS, VOLUME_BELOW

Match = tuple[int, ...]


def list_quadruples(types: Sequence[str], window: int) -> list[Match]:
    """W2: all A, B, C, D in this order."""
    singles: list[int] = []
    pairs: list[Match] = []
    triples: list[Match] = []
    found: list[Match] = []
    for i, name in enumerate(types):
        if name == "A":
            singles.append(i)
        elif name == "B":
            singles = [a for a in singles if a >= i - window]
            pairs += [(a, i) for a in singles]
        elif name == "C":
            pairs = [pair for pair in pairs if pair[0] >= i - window]
            triples += [(a, b, i) for a, b in pairs]
        elif name == "D":
            triples = [triple for triple in triples if triple[0] >= i - window]
            found += [(a, b, c, i) for a, b, c in triples]
    return found


def list_equal(types: Sequence[str], values: Sequence[int], window: int) -> list[Match]:
    """W2 with ``a.x = b.x``: the pairs are fewer."""
    singles: list[int] = []
    pairs: list[Match] = []
    triples: list[Match] = []
    found: list[Match] = []
    for i, (name, x) in enumerate(zip(types, values, strict=True)):
        if name == "A":
            singles.append(i)
        elif name == "B":
            singles = [a for a in singles if a >= i - window]
            pairs += [(a, i) for a in singles if values[a] == x]
        elif name == "C":
            pairs = [pair for pair in pairs if pair[0] >= i - window]
            triples += [(a, b, i) for a, b in pairs]
        elif name == "D":
            triples = [triple for triple in triples if triple[0] >= i - window]
            found += [(a, b, c, i) for a, b, c in triples]
    return found


def list_less(types: Sequence[str], values: Sequence[int], window: int) -> list[Match]:
    """W2 with ``a.x < b.x``."""
    singles: list[int] = []
    pairs: list[Match] = []
    triples: list[Match] = []
    found: list[Match] = []
    for i, (name, x) in enumerate(zip(types, values, strict=True)):
        if name == "A":
            singles.append(i)
        elif name == "B":
            singles = [a for a in singles if a >= i - window]
            pairs += [(a, i) for a in singles if values[a] < x]
        elif name == "C":
            pairs = [pair for pair in pairs if pair[0] >= i - window]
            triples += [(a, b, i) for a, b in pairs]
        elif name == "D":
            triples = [triple for triple in triples if triple[0] >= i - window]
            found += [(a, b, c, i) for a, b, c in triples]
    return found


def list_both(types: Sequence[str], values: Sequence[int], window: int) -> list[Match]:
    """W2 with ``a.x = b.x AND c.x < d.x``: the second is known with the last event."""
    singles: list[int] = []
    pairs: list[Match] = []
    triples: list[Match] = []
    found: list[Match] = []
    for i, (name, x) in enumerate(zip(types, values, strict=True)):
        if name == "A":
            singles.append(i)
        elif name == "B":
            singles = [a for a in singles if a >= i - window]
            pairs += [(a, i) for a in singles if values[a] == x]
        elif name == "C":
            pairs = [pair for pair in pairs if pair[0] >= i - window]
            triples += [(a, b, i) for a, b in pairs]
        elif name == "D":
            triples = [triple for triple in triples if triple[0] >= i - window]
            found += [(a, b, c, i) for a, b, c in triples if values[c] < x]
    return found


def count_quadruples(types: Sequence[str], window: int) -> int:
    """W2, counted: for each A that is not too old, how many pairs and triples begin with it."""
    starts: list[int] = []
    pairs: list[int] = []
    triples: list[int] = []
    total = 0
    for i, name in enumerate(types):
        if name == "A":
            while starts and starts[0] < i - window:
                del starts[0], pairs[0], triples[0]
            starts.append(i)
            pairs.append(0)
            triples.append(0)
        elif name == "B":
            pairs = [n + 1 for n in pairs]
        elif name == "C":
            triples = [n + m for n, m in zip(triples, pairs, strict=True)]
        elif name == "D":
            while starts and starts[0] < i - window:
                del starts[0], pairs[0], triples[0]
            total += sum(triples)
    return total


def list_closures(types: Sequence[str], window: int) -> list[Match]:
    """W2K: an A, some of the Bs behind it, a C."""
    singles: list[Match] = []
    longer: list[Match] = []
    found: list[Match] = []
    for i, name in enumerate(types):
        if name == "A":
            singles.append((i,))
        elif name == "B":
            singles = [run for run in singles if run[0] >= i - window]
            longer = [run for run in longer if run[0] >= i - window]
            longer += [(*run, i) for run in singles + longer]
        elif name == "C":
            found += [(*run, i) for run in longer if run[0] >= i - window]
    return found


def count_closures(types: Sequence[str], window: int) -> int:
    """W2K, counted: a further B doubles the choices of an A, and adds the one of itself alone."""
    starts: list[int] = []
    choices: list[int] = []
    total = 0
    for i, name in enumerate(types):
        if name == "A":
            starts.append(i)
            choices.append(0)
        elif name == "B":
            choices = [2 * n + 1 for n in choices]
        elif name == "C":
            while starts and starts[0] < i - window:
                del starts[0], choices[0]
            total += sum(choices)
    return total


def scan_contiguity(symbols: Sequence[int], prices: Sequence[int], volumes: Sequence[int], window: int) -> list[Match]:
    """W1, contiguity: an event of a symbol ends all its chains, or goes on with them, or both."""
    chains: dict[int, list[list[int]]] = {symbol: [] for symbol in SYMBOLS}
    found: list[Match] = []
    for i, (symbol, price, volume) in enumerate(zip(symbols, prices, volumes, strict=True)):
        live = chains[symbol]
        if live:
            if volume < VOLUME_BELOW:
                found += [(*chain, i) for chain in live if chain[0] >= i - window]
            if price > prices[live[0][-1]]:  # all of them end with the last event of the symbol
                for chain in live:
                    chain.append(i)
            else:
                live.clear()
        if price % START_EVERY == 0:
            live.append([i])
    return found


def scan_next_match(symbols: Sequence[int], prices: Sequence[int], volumes: Sequence[int], window: int) -> list[Match]:
    """W1, skip till next match: a chain takes each higher price, and may end with what it takes or passes by."""
    chains: dict[int, list[list[int]]] = {symbol: [] for symbol in SYMBOLS}
    found: list[Match] = []
    for i, (symbol, price, volume) in enumerate(zip(symbols, prices, volumes, strict=True)):
        live = chains[symbol]
        while live and live[0][0] < i - window:
            del live[0]
        if volume < VOLUME_BELOW:
            found += [(*chain, i) for chain in live]
        for chain in live:
            if price > prices[chain[-1]]:
                chain.append(i)
        if price % START_EVERY == 0:
            live.append([i])
    return found


def list_rising(types: Sequence[str], times: Sequence[int], peaks: Sequence[float], window: int) -> list[Match]:
    """W3: three bars of one stock, each with a higher peak."""
    singles: list[int] = []
    pairs: list[Match] = []
    found: list[Match] = []
    for i, (name, time, peak) in enumerate(zip(types, times, peaks, strict=True)):
        if name == RISING:
            singles = [a for a in singles if times[a] >= time - window]
            pairs = [pair for pair in pairs if times[pair[0]] >= time - window]
            found += [(a, b, i) for a, b in pairs if peak > peaks[b]]
            pairs += [(a, i) for a in singles if peak > peaks[a]]
            singles.append(i)
    return found
