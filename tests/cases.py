"""How many random cases a test takes: a twenty-fourth, always the same; all, and new ones, with ``ACEP_CASES=full``.

What a twenty-fourth is too few for, the mutants tell: ``test_mutants.py`` and ``test_runs_mutants.py``.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

FULL = os.environ.get("ACEP_CASES") == "full"
LEAST = 10
"""Cases at least, where a twenty-fourth would be fewer."""


def cases(full: int, otherwise: int | None = None) -> int:
    """How many of a full number of random cases: a twenty-fourth, or another number that is known to be enough."""
    return full if FULL else otherwise or min(full, max(full // 24, LEAST))


def examples(full: int, *, shrink: bool = True) -> settings:
    """Settings of hypothesis for so many examples, which may be slow.

    Worlds that come of a seed are not shrunk: hypothesis could only shrink the seed.
    """
    return settings(
        max_examples=cases(full),
        derandomize=not FULL,
        deadline=None,  # a busy machine is no failure
        phases=[phase for phase in Phase if shrink or phase not in (Phase.shrink, Phase.explain)],
        suppress_health_check=list(HealthCheck),
    )
