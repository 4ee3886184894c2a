"""The colours of all pictures and pages, light and dark, said once; to be told apart without red and green.

Texts (``ink``, ``soft``, and ``c0`` to ``c4``) have a contrast of at least 4.5 to 1 on ``back``, ``panel`` and
``wash``. Source of the series: Okabe and Ito, Color Universal Design, 2008, darkened or lightened where needed.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT = {
    "back": "#ffffff", "panel": "#f6f8fa", "ink": "#1f2328", "soft": "#59636e", "grid": "#e3e7eb", "line": "#d0d7de",
    "c0": "#0072b2", "c1": "#b84700", "c2": "#a03c90", "c3": "#117733", "c4": "#5b4a9e", "wash": "#eaf3fa",
}  # fmt: skip
DARK = {
    "back": "#15191e", "panel": "#1c2229", "ink": "#e6edf3", "soft": "#9aa5b1", "grid": "#2b323a", "line": "#39424d",
    "c0": "#56b4e9", "c1": "#f0a030", "c2": "#e58fd0", "c3": "#5cc48d", "c4": "#b3a7f0", "wash": "#1d2c38",
}  # fmt: skip
SERIES = 5
"""How many colours tell series apart: ``c0`` to ``c4``."""
FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif'
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"


def variables(selector: str) -> str:
    """The colours as CSS variables of a selector, light or dark as the reader's system is.

    Examples
    --------
    >>> variables(".x").splitlines()[0][:27]
    '.x{--back:#ffffff;--panel:#'
    """
    return f"{_rule(selector, LIGHT)}\n@media (prefers-color-scheme:dark){{{_rule(selector, DARK)}}}"


def _rule(selector: str, colours: Mapping[str, str]) -> str:
    return f"{selector}{{{';'.join(f'--{name}:{value}' for name, value in colours.items())}}}"
