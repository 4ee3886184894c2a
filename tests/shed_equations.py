"""Whether what is said of a run that was shed is an equation that holds, and streams on which runs are shed."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from acep_approx.engines.runs.worth import DOMINATED

EQUATION = re.compile(r"\((\S+) - (\S+)\) / (\S+) \* (\S+)(?: \* (\S+))?(?: / (\d+))? = (\S+)")


def stream(seed: int, rows: int = 700) -> list[dict[str, object]]:
    """Events whose later values are dearer the busier their key is."""
    dice, now, found = Random(seed), 0, []
    for _ in range(rows):
        now += dice.randrange(3)
        key = dice.choice("ppq")
        value = dice.randrange(40) + (20 if key == "p" else 0)
        found.append({"ts": now, "type": dice.choice("AABBCD"), "k": key, "x": value})
    return found


def check(run: dict[str, Any], words: dict[str, str]) -> bool:
    """Whether there is an equation; it is one, of the terms that stand above it."""
    if "score" not in words:
        assert not {"gain", "price"} & words.keys()
        return False
    found = EQUATION.fullmatch(words["score"])
    assert found is not None, words["score"]
    gain, covered, cost, coin, weight, beside, score = found.groups()
    assert [words[name].split(" ")[0].rstrip(":,") for name in ("gain", "covered", "cost", "coin")] == [
        gain, covered, cost, coin]  # fmt: skip
    assert words.get("weight", "").split(" ")[0] == (weight or "")
    product = (float(gain) - float(covered)) / float(cost) * float(coin) * float(weight or 1) / float(beside or 1)
    assert f"{product:.4g}" == score == f"{run['score']:.4g}", words["score"]
    assert (beside is not None) == ("beside" in words) == (run["beside"] == DOMINATED)
    assert 0 <= run["covered"] <= run["gain"]
    assert (weight is not None) == (run["weight"] != 1)
    return True
