"""The page as a server gives it, and as one file that needs nothing but a browser."""

import base64
import gzip
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from orrery.checkpoints.disk import write_text
from orrery.language_model.model import LanguageModel
from orrery.page.assets import asset_url, assets, inlined_modules, policy_hash, served_modules
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload, to_json
from orrery.page.views._view import View, ViewSubject, fitting, shown
from orrery.page.views.tokens import session
from orrery.tuning import matrices_kept

LARGEST = 32 << 20
"""Bytes of a saved page."""
ROOM = 1_480_000
"""Bytes of numbers in a saved page: with its code less than two million, for 32 tokens of a model of 30 layers."""
MOST = 1 << 30
"""Bytes of matrices that are unpacked once for all views, while a page is made."""
_BEGIN = 'import "#see/main.js";'


def served_page() -> tuple[str, str]:
    """Return the page of a server, and the content policy with which it is sent: nothing from elsewhere loads."""
    modules = served_modules()
    head = f'<link rel="stylesheet" href="{asset_url("style.css")}">\n<script type="importmap">{modules}</script>'
    page = _filled(head, f'<script type="module">{_BEGIN}</script>')
    scripts = f"script-src 'self' {policy_hash(modules)} {policy_hash(_BEGIN)}"
    policy = f"default-src 'self'; {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:"
    return page, f"{policy}; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"


@final
@dataclass(frozen=True)
class Page:
    """One pass of a model as a page: shown by a notebook, or saved.

    Attributes:
        subject: the pass; where it has edits, the page holds it without them too.
        edits: more lists of edits, whose passes the page holds.
    """

    subject: ViewSubject
    edits: Sequence[Sequence[Mapping[str, Any]]] = ()

    def html(self) -> str:
        """Return the page; the numbers of all views are in it, compressed."""
        policy = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:"
        style = assets()["style.css"].decode()
        head = (
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
            f'<script type="importmap">{inlined_modules()}</script>'
        )
        with matrices_kept(MOST):
            held = to_json(self._held()).replace("<", "\\u003c")
        return _filled(
            head,
            f'<script type="application/json" id="held">{held}</script>\n<script type="module">{_BEGIN}</script>',
        )

    def save(self, path: str | Path) -> Path:
        """Write the page into a file and return its path."""
        path = Path(path)
        write_text(path, self.html())
        return path

    def _repr_html_(self) -> str:
        """Return the page in a frame that can reach nothing around it, as notebooks show it."""
        return (
            '<iframe sandbox="allow-scripts allow-downloads" style="width:100%;height:48rem;border:0" '
            f'srcdoc="{html.escape(self.html())}"></iframe>'
        )

    def _held(self) -> Mapping[str, Any]:
        """Return what the page needs: its model, and the pass without and with its edits, and their differences."""
        lm, seen = self.subject.lm, self.subject.seen
        clean = self.subject if not seen.edits.edits else replace(self.subject, inside=Inside(lm, seen.given))
        lists = [*([seen.edits.plain()] if seen.edits.edits else []), *self.edits]
        edited = [replace(self.subject, inside=Inside(lm, seen.given, list(edits), seen.sources)) for edits in lists]
        screens = {view.screen for view in fitting(self.subject)} | {"trust"}
        model = _payloads(replace(self.subject, inside=None), ROOM)
        room = (ROOM - sum(map(len, model.values()))) // (1 + len(edited))
        return {
            "session": {
                **session(self.subject),
                **_named(lm),
                "screens": [name for name in SCREENS if name in screens],
            },
            "begin": seen.edits.plain(),
            "model": model,
            "runs": [_run(clean, room), *(_run(one, room, clean) for one in edited)],
        }


def _run(subject: ViewSubject, room: int, clean: ViewSubject | None = None) -> Mapping[str, Any]:
    """Return a pass with what its views show, and how that differs from what they show of the clean one."""
    payloads = _payloads(subject, room)
    for view in fitting(subject) if clean is not None else []:
        for view_settings in view.saved(subject) if view.compares else []:
            given = view_settings.model_dump(exclude_none=True)
            payload_shown = shown(view.kind, subject, given, clean)
            payloads[address(view.kind, {**given, DIFFERENCE: clean.seen.id if clean else ""})] = _packed(payload_shown)
    facts = {**shown("tokens", subject, {}).facts, **_named(subject.lm)}
    return {"edits": facts["edits"], "pass": facts, "payloads": payloads}


def _named(lm: LanguageModel) -> Mapping[str, str]:
    """Return how a file says to load the model: by its name, since it may be read on another machine."""
    return {"load": f"orrery.load({lm.stored.name!r})"}


def _payloads(subject: ViewSubject, room: int) -> dict[str, str]:
    """Return what the views of a pass show, or those of the model alone where there is none.

    ``room`` is for how many bytes: views that have a share part what the others leave, and hold one thing at least.
    """
    alone = replace(subject, inside=None)
    # The page asks the model for what needs no pass.
    views = [view for view in fitting(subject) if subject.inside is None or not view.fits(alone)]
    payloads = {name: packed for view in views if not view.share for name, packed in _saved(view, subject)}
    shares = sum(view.share for view in views)
    left = room - sum(map(len, payloads.values()))
    for view in views:
        held = left * view.share // max(shares, 1)
        for number, (name, packed) in enumerate(_saved(view, subject) if view.share else ()):
            held -= len(packed)
            if held < 0 and number:
                break
            payloads[name] = packed
    return payloads


def _saved(view: View, subject: ViewSubject) -> Iterator[tuple[str, str]]:
    """Yield what a saved page can ask of a view, by name."""
    for view_settings in view.saved(subject):
        given = view_settings.model_dump(exclude_none=True)
        yield address(view.kind, given), _packed(shown(view.kind, subject, given))


DIFFERENCE = "difference"
"""What names, among the settings of a view, the pass that is subtracted."""
SCREENS = ("chat", "inside", "decode", "model", "train", "trust")


def address(view: str, view_settings: Mapping[str, Any]) -> str:
    """Return the name of what is asked of a view, as ``source.js`` writes it."""
    from urllib.parse import urlencode

    query = urlencode(sorted((name, str(value)) for name, value in view_settings.items()))
    return f"{view}?{query}" if query else view


def _packed(payload: Payload) -> str:
    return base64.b64encode(gzip.compress(payload.to_bytes(), mtime=0)).decode()


def _filled(head: str, body: str) -> str:
    return assets()["index.html"].decode().replace("<!-- head -->", head).replace("<!-- body -->", body)
