"""Learners that look often and rescore after a few tests, so that small streams are learned from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from acep_approx.learning import learner, training_sample


@contextmanager
def hasty(piece: int = 16) -> Iterator[None]:
    """Meanwhile all learners are so; ``piece``: events after which they look."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learner, "FIRST", ((0, 0),))
        patch.setattr(learner, "FIRST_PIECE", piece)
        patch.setattr(learner, "LEAST_ROWS", 4)
        patch.setattr(training_sample, "LEAST_ROWS", 4)
        patch.setattr(learner, "REFIT", 1.0)
        yield
