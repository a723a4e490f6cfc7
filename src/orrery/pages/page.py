"""The page as a server gives it, and as one file that needs nothing but a browser."""

import base64
import gzip
import html
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from orrery.checkpoints.disk import write_text
from orrery.pages.assets import asset_url, assets, inlined_modules, policy_hash, served_modules
from orrery.views._payload import Payload, to_json
from orrery.views._view import Subject, fitting, shown
from orrery.views.tokens import session

LARGEST = 32 << 20
"""Bytes of a saved page."""
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
    """One pass of a model as a page: shown by a notebook, or saved."""

    subject: Subject

    def html(self) -> str:
        """Return the page; the numbers of all views are in it, compressed."""
        policy = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:"
        style = assets()["style.css"].decode()
        head = (
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
            f'<script type="importmap">{inlined_modules()}</script>'
        )
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
        payloads: dict[str, str] = {}
        for view in fitting(self.subject):
            for asked in view.saved(self.subject):
                given = asked.model_dump(exclude_none=True)
                payloads[address(view.kind, given)] = _packed(shown(view.kind, self.subject, given))
        screens = {view.screen for view in fitting(self.subject)} | {"trust"}
        told = shown("tokens", self.subject, {}).facts
        return {
            "session": {**session(self.subject), "screens": [name for name in SCREENS if name in screens]},
            "pass": told,
            "payloads": {"pass": payloads, "model": payloads},
        }


SCREENS = ("chat", "inside", "decode", "model", "train", "trust")


def address(view: str, asked: Mapping[str, Any]) -> str:
    """Return the name of what is asked of a view, as ``source.js`` writes it."""
    from urllib.parse import urlencode

    query = urlencode(sorted((name, str(value)) for name, value in asked.items()))
    return f"{view}?{query}" if query else view


def _packed(payload: Payload) -> str:
    return base64.b64encode(gzip.compress(payload.to_bytes(), mtime=0)).decode()


def _filled(head: str, body: str) -> str:
    return assets()["index.html"].decode().replace("<!-- head -->", head).replace("<!-- body -->", body)
