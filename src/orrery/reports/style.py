"""How pages look: one column, light or dark as the reader's system is, and light on paper."""

_LIGHT = "--ink:#1d2127;--soft:#5a6270;--paper:#fdfdfc;--line:#e2e4e8;--panel:#f4f5f6;--accent:#0b62a4;--wrong:#b42318"
_DARK = "--ink:#e4e7eb;--soft:#9aa4b2;--paper:#14171b;--line:#2b3139;--panel:#1c2127;--accent:#62b0f0;--wrong:#ff8a80"
# What is wider than its place shows a shade at the side where more of it is; the shade stands still, and what covers
# it at the end moves with the content.
_MORE = (
    "linear-gradient(to right,var(--paper) 40%,transparent) 0 0/2.5rem 100% no-repeat local,"
    "linear-gradient(to left,var(--paper) 40%,transparent) 100% 0/2.5rem 100% no-repeat local,"
    "linear-gradient(to right,var(--shade),transparent) 0 0/.75rem 100% no-repeat scroll,"
    "linear-gradient(to left,var(--shade),transparent) 100% 0/.75rem 100% no-repeat scroll"
)

STYLE = f"""
:root{{color-scheme:light dark;{_LIGHT};--shade:#0003}}
@media screen and (prefers-color-scheme:dark){{:root{{{_DARK};--shade:#000c}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,sans-serif}}
main{{max-width:54rem;margin:0 auto;padding:3rem 1.25rem 5rem;overflow-wrap:break-word}}
h1{{margin:0;font-size:2.2rem;line-height:1.2;letter-spacing:-.02em}}
h2{{margin:3.5rem 0 1rem;padding-top:1.25rem;border-top:1px solid var(--line);font-size:1.25rem;line-height:1.3}}
h3{{margin:2rem 0 .25rem;font-size:1rem}}
p,li{{max-width:42rem}}
.kind{{margin:0 0 .5rem;color:var(--soft);font-size:.875rem}}
.kind b{{margin-right:.25rem;color:var(--accent)}}
.about{{display:flex;flex-wrap:wrap;gap:.25rem .5rem;margin:1rem 0;padding:0;list-style:none;color:var(--soft);
font-size:.8125rem}}
.about li{{min-width:0;padding:.1rem .6rem;border:1px solid var(--line);border-radius:1rem;overflow-wrap:anywhere}}
.lead{{font-size:1.15rem}}
figure{{margin:1.25rem 0}}
figcaption,.source{{max-width:42rem;margin-top:.25rem;color:var(--soft);font-size:.875rem}}
.wide{{overflow-x:auto;background:{_MORE}}}
.wide>svg{{display:block;min-width:var(--least)}}
.thumbs{{display:grid;grid-template-columns:repeat(var(--columns),minmax(0,1fr));gap:1rem}}
.thumbs figure{{margin:0}}
.thumbs .t{{display:none}}
.thumbs svg{{min-width:0}}
blockquote{{max-height:20rem;margin:1rem 0;padding:.75rem 1rem;overflow-y:auto;
background:var(--panel);border-left:3px solid var(--line);
white-space:pre-wrap;overflow-wrap:anywhere;font:.9rem/1.5 ui-monospace,monospace}}
blockquote b{{color:var(--accent)}}
pre{{margin:1rem 0;padding:.75rem 1rem;background:var(--panel);white-space:pre-wrap;overflow-wrap:anywhere;
font:.85rem/1.6 ui-monospace,monospace}}
table{{width:100%;margin:1rem 0;border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}}
th,td{{padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}}
th{{color:var(--soft);font-weight:500}}
td:last-child,th:last-child{{padding-right:0}}
.facts td{{overflow-wrap:anywhere}}
.facts td:first-child{{width:12rem;color:var(--soft);overflow-wrap:break-word}}
a{{color:var(--accent)}}
details{{margin:1rem 0}}
summary{{color:var(--soft);font-size:.9rem;cursor:pointer}}
:focus-visible{{outline:2px solid var(--accent);outline-offset:2px}}
.failed{{color:var(--wrong);font-weight:600}}
@media(min-width:40rem){{.wide td:first-child{{white-space:nowrap}}}}
@media(max-width:40rem){{
main{{padding:1.5rem 1rem 3rem}}
h1{{font-size:1.6rem}}
h2{{margin-top:2.5rem}}
.lead{{font-size:1.05rem}}
.facts td:first-child{{width:7rem}}
td{{overflow-wrap:anywhere}}
.wide td:first-child{{overflow-wrap:break-word}}
.many td{{max-width:15rem;overflow-wrap:break-word}}
.many{{width:max-content;min-width:100%}}
.many th{{max-width:8rem}}
.many :is(th,td):first-child{{position:sticky;left:0;max-width:8rem;background:var(--paper)}}}}
@media print{{
main{{max-width:none;padding:0}}
body{{font-size:11pt}}
.wide,blockquote{{max-height:none;overflow:visible}}
.wide{{background:none}}
.wide>svg{{min-width:0}}
figure,blockquote,pre,tr,.about{{break-inside:avoid}}
h2,h3{{break-after:avoid}}
a{{color:inherit}}}}
""".strip()
"""Plain CSS; the figures bring their own and follow the same scheme."""
