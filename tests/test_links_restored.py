"""Links whose runs have left the window: none is counted that was not written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from acep_approx import compile_query
from acep_approx.engines.runs.runs import Runs
from acep_approx.kernels.runs import layout


def test_links_of_merged_runs_whose_own_links_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of one time wait, a restored state has no room, so their links go before they are merged.

    What stood in the memory was taken for a link, and another state to save led anywhere.
    """
    empty = np.empty

    def full(*shape: Any, **options: Any) -> Any:
        array = empty(*shape, **options)
        if array.dtype == np.int64:
            array.fill(2**40)
        return array

    query = compile_query("PATTERN SEQ(B a, B b) WITHIN 1 SIMULTANEOUS")
    matcher = query.matcher()
    matcher.push([{"ts": 0, "type": "B"}] * 4)
    monkeypatch.setattr(np, "empty", full)
    matcher = query.from_state(matcher.state_bytes())
    matcher.push([{"ts": 2, "type": "B"}])
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    used = int(engine.control[layout.LINKS])
    links = engine.links[: used * layout.LINK].reshape(-1, layout.LINK)
    assert (links[:, [layout.LINK_BEFORE, layout.LINK_OTHER]] < np.arange(used)[:, None]).all()
    assert matcher.push([{"ts": 3, "type": "B"}]).num_rows == 1
    assert matcher.state_bytes()
