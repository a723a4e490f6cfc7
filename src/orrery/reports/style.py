"""How pages look: one column, light or dark as the reader's system is."""

STYLE = """
:root{color-scheme:light dark;--ink:#1d2127;--soft:#5a6270;--paper:#fdfdfc;--line:#e2e4e8;
--panel:#f4f5f6;--accent:#0b62a4;--wrong:#b42318}
@media(prefers-color-scheme:dark){
:root{--ink:#e4e7eb;--soft:#9aa4b2;--paper:#14171b;--line:#2b3139;--panel:#1c2127;--accent:#62b0f0;--wrong:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,sans-serif}
main{max-width:52rem;margin:0 auto;padding:3rem 1.25rem 5rem}
h1{margin:0;font-size:2.2rem;letter-spacing:-.02em}
h2{margin:3.5rem 0 1rem;padding-top:1.25rem;border-top:1px solid var(--line);font-size:1.25rem}
h3{margin:2rem 0 .25rem;font-size:1rem}
p{max-width:42rem}
.lead{font-size:1.15rem}
figure{margin:1.25rem 0;overflow-x:auto}
figcaption{max-width:42rem;color:var(--soft);font-size:.875rem}
.thumbs{display:grid;grid-template-columns:repeat(var(--columns),minmax(0,1fr));gap:1rem}
.thumbs figure{margin:0}
.thumbs .t{display:none}
blockquote{margin:1rem 0;padding:.75rem 1rem;background:var(--panel);border-left:3px solid var(--line);
white-space:pre-wrap;overflow-wrap:anywhere;font:.9rem/1.5 ui-monospace,monospace}
blockquote b{color:var(--accent)}
pre{margin:1rem 0;padding:.75rem 1rem;background:var(--panel);overflow-x:auto;font:.85rem/1.6 ui-monospace,monospace}
table{width:100%;border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;
overflow-wrap:anywhere}
@media(min-width:56rem){td{overflow-wrap:break-word}}
th{color:var(--soft);font-weight:500;overflow-wrap:normal}
a{color:var(--accent)}
details{margin:1rem 0;overflow-x:auto}
summary{color:var(--soft);font-size:.9rem;cursor:pointer}
.failed{color:var(--wrong);font-weight:600}
td:first-child{overflow-wrap:normal}
@media(min-width:40rem){td:first-child{white-space:nowrap}}
section{overflow-x:auto}
""".strip()
"""Plain CSS; the figures bring their own and follow the same scheme."""
