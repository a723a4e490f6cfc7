"""No module imports itself by way of others: what stands on what has an order, in nn even where an import is lazy."""

import ast
from collections.abc import Iterator, Mapping, Sequence

import pytest

from architecture import rules
from architecture.rules import Module

Graph = Mapping[str, set[str]]


def circles(modules: Sequence[Module], *, lazy: bool) -> list[list[str]]:
    """Return the groups of modules that import each other in a circle.

    ``lazy`` also follows imports inside functions and those for type checkers alone.
    """
    names = {module.name for module in modules}
    graph = {module.name: set(_imported(module, names, lazy)) - {module.name} for module in modules}
    return [sorted(group) for group in _groups(graph) if len(group) > 1]


def _imported(module: Module, names: set[str], lazy: bool) -> Iterator[str]:
    """Yield the modules of ours that a module imports."""
    for node in _statements(module.tree, lazy):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            assert not node.level, f"{module.name}: imports are absolute"
            for alias in node.names:
                yield from [f"{base}.{alias.name}"] if f"{base}.{alias.name}" in names else {base} & names


def _statements(node: ast.AST, lazy: bool) -> Iterator[ast.AST]:
    """Yield what is run when a module is imported, or everything."""
    for child in ast.iter_child_nodes(node):
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if lazy or not (inside or typing):
            yield child
            yield from _statements(child, lazy)


def _groups(graph: Graph) -> list[set[str]]:
    """Return the strongly connected parts: modules that reach each other."""
    reached = {name: _reached(graph, name) for name in graph}
    parts = {frozenset({a, *(b for b in reached[a] if a in reached[b])}) for a in graph}
    return sorted(map(set, parts), key=sorted)


def _reached(graph: Graph, start: str) -> set[str]:
    found, open_ends = set[str](), [start]
    while open_ends:
        new = graph.get(open_ends.pop(), set()) - found
        found |= new
        open_ends += new
    return found


def test_no_modules_import_each_other_in_a_circle():
    assert circles(rules.source_modules(), lazy=False) == []


def test_in_nn_not_even_lazily():
    assert circles([m for m in rules.source_modules() if m.package == "nn"], lazy=True) == []


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
    circle = [["orrery.nn.a", "orrery.nn.b", "orrery.nn.c"]]
    assert circles(modules, lazy=True) == circle
    assert circles(modules, lazy=False) == (circle if way == "at once" else [])
    assert circles(modules[:2], lazy=True) == []
