"""No module and no package imports itself by way of others, be an import lazy or for types: they have an order."""

import ast
from collections.abc import Iterator, Mapping, Sequence

import pytest

from architecture import rules
from architecture.rules import Module

Graph = Mapping[str, set[str]]


def circles(modules: Sequence[Module], *, packages: bool = False) -> list[list[str]]:
    """Return the groups of modules, or of packages, that import each other in a circle.

    Imports inside functions and those for type checkers alone count as any other.
    """
    names = {module.name for module in modules}
    graph: dict[str, set[str]] = {}
    for module in modules:
        one = _package(module.name) if packages else module.name
        imported = {_package(other) if packages else other for other in _imported(module, names)}
        graph[one] = graph.get(one, set()) | imported - {one}
    return [sorted(group) for group in _groups(graph) if len(group) > 1]


def _package(name: str) -> str:
    """Return the package that a module stands in: ``orrery.nn`` of ``orrery.nn.cache.rows``."""
    return ".".join(name.split(".")[:2])


def _imported(module: Module, names: set[str]) -> Iterator[str]:
    """Yield the modules of ours that a module imports.

    The package itself gives names from all over to its users and is imported by nobody for them.
    """
    if module.name == "orrery":
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            assert not node.level, f"{module.name}: imports are absolute"
            for alias in node.names:
                yield from [f"{base}.{alias.name}"] if f"{base}.{alias.name}" in names else {base} & names


def _groups(graph: Graph) -> list[set[str]]:
    """Return the strongly connected parts: modules that reach each other."""
    reached = {name: _reached(graph, name) for name in graph}
    parts = {frozenset({a, *(b for b in reached[a] if a in reached[b])}) for a in graph}
    return sorted(map(set, parts), key=sorted)


def _reached(graph: Graph, start: str) -> set[str]:
    reached, open_ends = set[str](), [start]
    while open_ends:
        new = graph.get(open_ends.pop(), set()) - reached
        reached |= new
        open_ends += new
    return reached


def test_no_modules_import_each_other_in_a_circle():
    assert circles(rules.source_modules()) == []


def test_no_packages_import_each_other_in_a_circle():
    assert circles(rules.source_modules(), packages=True) == []


A = "from orrery.nn.b import B\n"
BACK = {
    "at once": "import orrery.nn.a\n",
    "in a function": "def f():\n    from orrery.nn.a import A\n",
    "for types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from orrery.nn import a\n",
}


@pytest.mark.parametrize("way", BACK)
def test_a_circle_is_found(way):
    modules = [
        Module("orrery.nn.a", A),
        Module("orrery.nn.b", "import orrery.nn.c\n"),
        Module("orrery.nn.c", BACK[way]),
    ]
    assert circles(modules) == [["orrery.nn.a", "orrery.nn.b", "orrery.nn.c"]]
    assert circles(modules[:2]) == []
    assert circles(modules, packages=True) == []


def test_a_circle_of_packages_is_found_where_modules_make_none():
    modules = [
        Module("orrery.nn.a", "from orrery.text import b\n"),
        Module("orrery.nn.c", ""),
        Module("orrery.text.b", "def f():\n    import orrery.nn.c\n"),
    ]
    assert circles(modules) == []
    assert circles(modules, packages=True) == [["orrery.nn", "orrery.text"]]
