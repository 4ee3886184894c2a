"""Learned history: which situations led to matches before.

Knows match vectors, bundles, rewards and event counts; imports nothing of ``acep_approx``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from history.errors import HistoryError
    from history.fitting import fit_scheme
    from history.graph import Graph
    from history.store import Stored, load, save
    from history.trace import Trace
    from history.values import Values, fit_values
    from history.vectors import Feature, Place, Scheme

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

_HOME = {
    **dict.fromkeys(("Feature", "Place", "Scheme"), "history.vectors"),
    **dict.fromkeys(("Stored", "load", "save"), "history.store"),
    **dict.fromkeys(("Values", "fit_values"), "history.values"),
    "Graph": "history.graph",
    "HistoryError": "history.errors",
    "Trace": "history.trace",
    "fit_scheme": "history.fitting",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing the package stays cheap."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
