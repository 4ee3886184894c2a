"""How pictures look: the colours of all of them and of pages, light and dark, to be told apart without red and green.

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


COLOURS = variables(".acep-view,.acep-graph")
GRAPH = f"""
.acep-graph{{font-family:{FONT};max-width:100%;height:auto}}
.acep-graph text{{fill:var(--ink);stroke:none}}
.acep-graph .name{{font-size:13px;font-weight:600}}.acep-graph .note{{font-size:11.5px;fill:var(--soft)}}
.acep-graph .said{{font-family:{MONO};font-size:12px}}.acep-graph .quiet{{fill:var(--soft)}}
.acep-graph .back{{fill:var(--back)}}
.acep-graph .node{{fill:var(--panel);stroke:var(--soft);stroke-width:1.4}}
.acep-graph .start{{fill:var(--back);stroke:var(--line)}}
.acep-graph .end{{fill:var(--back);stroke:var(--c3);stroke-width:1.6}}.acep-graph .inner{{fill:none;stroke:var(--c3)}}
.acep-graph .gone{{fill:var(--back);stroke:var(--c2);stroke-dasharray:4 3}}
.acep-graph .table{{stroke:var(--c3)}}.acep-graph .call{{stroke:var(--c4)}}
.acep-graph .stream{{fill:var(--back);stroke:var(--c0)}}
.acep-graph .turn{{stroke:var(--c1);stroke-width:2}}
.acep-graph .edge{{fill:none;stroke:var(--soft);stroke-width:1.5}}.acep-graph .head{{fill:var(--soft);stroke:none}}
.acep-graph .edge.missing{{stroke:var(--c1);stroke-dasharray:6 4}}.acep-graph .head.missing{{fill:var(--c1)}}
.acep-graph text.missing{{fill:var(--c1)}}
.acep-graph .edge.filter{{stroke-dasharray:1.5 3.5;stroke-linecap:round}}
.acep-graph .edge.rebind{{stroke:var(--c0);stroke-width:2.4}}.acep-graph .head.rebind{{fill:var(--c0)}}
.acep-graph .edge.kill{{stroke:var(--c2);stroke-dasharray:6 4}}.acep-graph .head.kill{{fill:none;stroke:var(--c2)}}
.acep-graph .head.kill{{stroke-width:2;stroke-dasharray:none}}
.acep-graph .edge.pass{{stroke:var(--soft);stroke-width:1.1;stroke-opacity:.6}}
.acep-graph .head.pass{{fill:var(--soft);fill-opacity:.6}}
"""
VIEW = f"""
.acep-view{{container-type:inline-size;background:var(--back);color:var(--ink);font:14px/1.5 {FONT};
border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem;margin:.3rem 0;max-width:100%;
box-sizing:border-box;overflow-wrap:anywhere}}
.acep-view>:first-child{{margin-top:0}}.acep-view>:last-child{{margin-bottom:0}}
.acep-view p{{margin:.4rem 0;color:inherit}}.acep-view .soft,.acep-view caption{{color:var(--soft)}}
.acep-view .title{{font-weight:600;font-size:1.02em}}
.acep-view .good{{color:var(--c3)}}.acep-view .bad{{color:var(--c1)}}
.acep-view pre{{background:var(--panel);color:var(--ink);border:1px solid var(--line);border-radius:6px;
padding:.5rem .7rem;margin:.5rem 0;white-space:pre-wrap;font:12.5px/1.5 {MONO}}}
.acep-view pre code{{background:none;color:inherit;padding:0;border:0;font:inherit;white-space:inherit}}
.acep-view .kw{{color:var(--c0);font-weight:600}}.acep-view .str{{color:var(--c3)}}.acep-view .num{{color:var(--c1)}}
.acep-view .fn{{color:var(--c4)}}.acep-view .com{{color:var(--soft);font-style:italic}}
.acep-view .scroll{{overflow-x:auto;margin:.4rem 0}}
.acep-view table{{border-collapse:collapse;border:0;margin:.2rem 0;font-size:.92em;font-variant-numeric:tabular-nums;
background:none;color:inherit;overflow-wrap:normal}}
.acep-view caption{{text-align:left;white-space:nowrap;caption-side:top;padding:0 0 .2rem}}
.acep-view tr,.acep-view thead,.acep-view tbody{{background:none}}
.acep-view th,.acep-view td{{text-align:left;padding:.18rem .9rem .18rem 0;border:0;
border-bottom:1px solid var(--grid);white-space:nowrap;color:inherit;background:none;vertical-align:top}}
.acep-view th{{font-weight:600;color:var(--soft)}}.acep-view .n{{text-align:right}}
.acep-view ul{{margin:.3rem 0;padding-left:1.2rem}}.acep-view li{{margin:.1rem 0}}
.acep-view details{{margin:.4rem 0}}.acep-view summary{{cursor:pointer;color:var(--soft)}}
.acep-view .tiles{{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));gap:.5rem;margin:.5rem 0}}
.acep-view .tile{{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.4rem .6rem}}
.acep-view .tile b{{display:block;font-size:1.2em;font-weight:650;font-variant-numeric:tabular-nums}}
.acep-view .tile span{{display:block;color:var(--soft);font-size:.86em;line-height:1.35}}
.acep-view svg{{max-width:100%;height:auto;display:block}}
.acep-view .wide{{overflow-x:auto}}.acep-view .narrow{{display:none;overflow-x:auto}}
.acep-view .wide>svg,.acep-view .narrow>svg{{max-width:none;width:100%}}
"""
