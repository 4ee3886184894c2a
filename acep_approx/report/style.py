"""How the report looks: one style sheet, light and dark. Colours as in ``acep_approx.timeline``."""

STYLE = """
:root{--back:#fff;--panel:#f6f8fa;--ink:#1f2328;--soft:#59636e;--grid:#e3e7eb;--line:#d0d7de;
--r0:#0072b2;--r1:#d55e00;--r2:#aa4499;--r3:#117733;--r4:#5b4a9e}
@media (prefers-color-scheme:dark){:root{--back:#15191e;--panel:#1c2229;--ink:#e6edf3;--soft:#9aa5b1;--grid:#2b323a;
--line:#39424d;--r0:#56b4e9;--r1:#f0a030;--r2:#e58fd0;--r3:#5cc48d;--r4:#b3a7f0}}
*{box-sizing:border-box}
body{background:var(--back);color:var(--ink);margin:0;padding:2rem 1rem 4rem;
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
main{max-width:1040px;margin:0 auto}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .25rem}h2{font-size:1.12rem;margin:2.6rem 0 .2rem}
p{margin:.2rem 0 .8rem;max-width:75ch}.soft,figcaption,caption{color:var(--soft)}
pre{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem;overflow-x:auto;
font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(210px,1fr));gap:.8rem;margin:1.2rem 0}
.tile{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.75rem 1rem}
.tile b{display:block;font-size:1.65rem;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums}
.tile span{display:block;color:var(--soft);font-size:.88rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:.8rem 0}dt{color:var(--soft)}dd{margin:0}
figure{margin:.6rem 0 0;overflow-x:auto}figure svg{width:100%;min-width:640px;height:auto;display:block}
.pair{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:2rem;align-items:start}
.pair figure svg{min-width:420px}
@media (max-width:860px){.pair{grid-template-columns:minmax(0,1fr);gap:.6rem}}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;margin:.5rem 0}
caption{text-align:left;padding:0 0 .3rem}th,td{padding:.28rem .7rem;border-bottom:1px solid var(--grid)}
th{font-weight:600;text-align:left;vertical-align:bottom;border-bottom-color:var(--line)}
th:first-child,td:first-child{padding-left:0}
.n{text-align:right}.pair table{width:100%}
details{margin:.5rem 0 0}summary{cursor:pointer;color:var(--soft);font-size:.88rem}
.chart{font-size:13px}.chart text{fill:var(--soft)}.chart .ink{fill:var(--ink)}
.chart .head{font-weight:600;fill:var(--ink)}
.chart .grid{stroke:var(--grid);fill:none}.chart .axis{stroke:var(--line);fill:none}
.chart .r0{fill:var(--r0)}.chart .r1{fill:var(--r1)}.chart .r2{fill:var(--r2)}.chart .r3{fill:var(--r3)}
.chart .r4{fill:var(--r4)}.chart .soft{fill-opacity:.22}
.chart .l0{stroke:var(--r0)}.chart .l1{stroke:var(--r1)}.chart .l2{stroke:var(--r2)}.chart .l3{stroke:var(--r3)}
.chart .l4{stroke:var(--r4)}.chart .line{fill:none;stroke-width:2;stroke-linejoin:round}
.chart .dash{stroke-dasharray:6 4}.chart .room{fill:var(--grid);fill-opacity:.6}
.chart .hit{fill:transparent}.chart .hit:hover{fill:var(--ink);fill-opacity:.07}
.chart .band{fill-opacity:.3}.chart .band:hover{fill-opacity:.6}
"""
