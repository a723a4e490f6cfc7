"""The files of the page, and the two ways that a browser finds its modules: by URL, or inside the page."""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from orrery.page.stripping import stripped

KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


@cache
def assets() -> dict[str, bytes]:
    """Return every file of the page by its path, such as ``see/heat.js``; modules without what only people read."""
    return dict(_walk(files("orrery.page") / "web", ""))


def asset_url(path: str) -> str:
    """Return where a server has a file; the address changes with what is in the file, so that it can be kept."""
    return f"/static/{path}?v={hashlib.sha256(assets()[path]).hexdigest()[:12]}"


def served_modules() -> str:
    """Return the import map of a served page."""
    return _import_map({path: asset_url(path) for path in _modules()})


def inlined_modules() -> str:
    """Return the import map of a page that holds its modules itself."""
    return _import_map({path: _data(assets()[path]) for path in _modules()})


def policy_hash(script: str) -> str:
    """Return what a content policy calls a script that stands in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _modules() -> list[str]:
    return sorted(path for path in assets() if path.endswith(".js"))


def _import_map(places: dict[str, str]) -> str:
    return json.dumps({"imports": {f"#{path}": place for path, place in places.items()}}, separators=(",", ":"))


def _data(module: bytes) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(module).decode()}"


def _walk(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    assets: list[tuple[str, bytes]] = []
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        name = f"{path}{one.name}"
        if one.is_dir():
            assets += _walk(one, f"{name}/")
        elif any(one.name.endswith(kind) for kind in KINDS):
            assets.append((name, _sent(name, one.read_bytes())))
    return assets


def _sent(name: str, content: bytes) -> bytes:
    return stripped(content.decode()).encode() if name.endswith(".js") else content
