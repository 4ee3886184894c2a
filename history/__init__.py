"""Learned history: which situations led to matches before.

Knows match vectors, bundles, rewards and event counts; imports nothing of ``acep_approx``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy, moved

if TYPE_CHECKING:
    from history.errors import HistoryError
    from history.fitting import fit_scheme
    from history.graph import Graph
    from history.store import Stored, load, save
    from history.trace import Trace
    from history.values import Values, fit_values
    from history.vectors import Feature, Place, Scheme
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "history.errors": "HistoryError",
            "history.fitting": "fit_scheme",
            "history.graph": "Graph",
            "history.store": "Stored load save",
            "history.trace": "Trace",
            "history.values": "Values fit_values",
            "history.vectors": "Feature Place Scheme",
        },
    )

__distribution__ = "acep-approx"

__all__ = [
    "Feature",
    "Graph",
    "HistoryError",
    "Place",
    "Scheme",
    "Stored",
    "Trace",
    "Values",
    "fit_scheme",
    "fit_values",
    "load",
    "save",
]

moved(["history.proxy", "history.selection", "history.sketch"], "history.coverage")
