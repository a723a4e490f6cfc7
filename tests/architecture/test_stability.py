"""What the guides use of the program is promised by the page of the API, or said to change by that of stability."""

import ast
import re
from collections.abc import Iterator

import pytest

from pages import DOCS, pages, text_of

_CODE = re.compile(r"^```(?:\{example\}|python)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"\A(:[a-z]+:.*\n)+\n?")
_PROMISED = re.compile(r"^\.\. auto(?:class|function|data):: (orrery\S+)", re.MULTILINE)
_WHOLE = re.compile(r"^\.\. automodule:: (orrery\S+)", re.MULTILINE)
_MAY_CHANGE = re.compile(r"`(orrery(?:\.\w+)+)`")


def used() -> Iterator[tuple[str, str]]:
    """Yield the names that pages and their examples import from the program, with where."""
    for page in pages():
        for match in _CODE.finditer(page.read_text(encoding="utf-8")):
            yield from ((page.name, name) for name in imported(_OPTION.sub("", match["code"])))
    for path in sorted((DOCS / "examples").glob("*.py")):
        yield from ((path.name, name) for name in imported(path.read_text(encoding="utf-8")))


def imported(code: str) -> Iterator[str]:
    """Yield what a program imports from orrery."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orrery."):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("orrery."))


def unsaid(name: str, api: str, stability: str) -> bool:
    """Say whether neither page speaks of a name; a module speaks for what is in it, a part for its module."""
    promised, modules = set(_PROMISED.findall(api)), {*_WHOLE.findall(api)}
    modules |= set(_MAY_CHANGE.findall(stability.partition("## What the guides use and may change")[2]))
    inside = any(name == module or name.startswith(f"{module}.") for module in modules)
    holder = any(one.startswith(f"{name}.") for one in promised)
    return not (inside or holder or name in promised)


def test_every_name_that_a_guide_imports_is_promised_or_said_to_change() -> None:
    api, stability = text_of("api"), text_of("stability")
    imported = sorted(set(used()))
    assert len(imported) > 100
    assert [one for one in imported if unsaid(one[1], api, stability)] == []


@pytest.mark.parametrize("name", ["orrery.a.hidden", "orrery.ab", "orrery.c"])
def test_a_name_of_neither_page_is_found(name: str) -> None:
    pages = ".. autofunction:: orrery.a.known\n", "## What the guides use and may change\n`orrery.b.parts`"
    assert unsaid(name, *pages)
    assert not any(unsaid(one, *pages) for one in ("orrery.a", "orrery.a.known", "orrery.b.parts.x"))
