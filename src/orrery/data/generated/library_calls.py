"""What the functions of the standard library call, in order: functions as users, what they call as items."""

import ast
import builtins
import re
import warnings
from collections.abc import Iterator

from orrery.data.generated import GeneratedSet, register
from orrery.data.generated._library import PYTHON, sources

Function = ast.FunctionDef | ast.AsyncFunctionDef
_BUILTINS = frozenset(dir(builtins))
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@register
class LibraryCalls(GeneratedSet):
    """Function, what it calls, the number of the call, and what is called in words."""

    kind = "library_calls"
    what = "the calls of each function of the standard library in their order, as user, item and time"
    made_from = PYTHON
    how = (
        "test, idlelib, lib2to3 and installed packages left out; a call counts where a function of Python, one that is "
        "imported, or a method by its name is called, once its arguments are; functions inside functions are their own"
    )
    parts = ("train",)
    columns = ("user", "item", "time", "text")
    text = "text"

    def records(self, part: str) -> Iterator[dict[str, str]]:
        """Yield the calls, function by function."""
        for module, source in sources():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    tree = ast.parse(source)
            except (SyntaxError, ValueError):  # a template, or written for another Python
                continue
            imported = imports_of(tree)
            for number, function in enumerate(node for node in ast.walk(tree) if isinstance(node, Function)):
                user = f"{module}.{function.name}:{number}"
                for time, item in enumerate(calls_of(function, imported)):
                    yield {"user": user, "item": item, "time": str(time), "text": in_words(item)}


def imports_of(tree: ast.Module) -> dict[str, str]:
    """Return what each imported name stands for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                      for a in node.names}  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def calls_of(function: ast.AST, imported: dict[str, str]) -> Iterator[str]:
    """Yield what a function calls, arguments before the call that takes them."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, Function | ast.ClassDef):
            continue
        yield from calls_of(child, imported)
        if isinstance(child, ast.Call) and (name := called(child.func, imported)):
            yield name


def called(target: ast.expr, imported: dict[str, str]) -> str | None:
    """Return the name of what is called: in full where it is imported, ``.name`` of a method."""
    if isinstance(target, ast.Name):
        return imported.get(target.id) or (target.id if target.id in _BUILTINS else None)
    if not isinstance(target, ast.Attribute):
        return None
    parts, root = [target.attr], target.value
    while isinstance(root, ast.Attribute):
        parts.append(root.attr)
        root = root.value
    if isinstance(root, ast.Name) and root.id in imported:
        return ".".join([imported[root.id], *reversed(parts)])
    return f".{target.attr}"


def in_words(item: str) -> str:
    """Return the words of a name: ``os path join``, ``get int`` of ``getInt``."""
    return " ".join(_PART.findall(item)).lower() or item
