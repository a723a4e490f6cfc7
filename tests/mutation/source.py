"""The functions of a source text and their lines: a trace is kept by them, and outlives an edit elsewhere."""

import ast
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Function:
    """One function or method: where it begins, where its body does, where it ends, and a digest of its text."""

    name: str
    first: int
    body: int
    last: int
    digest: str


def functions_of(path: Path) -> dict[str, Function]:
    """Return the outermost functions of a file by their names; of two with one name, the last."""
    return _functions(path.read_text(encoding="utf-8")) if path.exists() else {}


@functools.cache
def _functions(text: str) -> dict[str, Function]:
    by_name, lines = {}, text.splitlines()

    def walk(body: list[ast.stmt], outer: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{outer}{node.name}.")
            elif isinstance(node, _FUNCTIONS):
                first, last = min(n.lineno for n in (node, *node.decorator_list)), node.end_lineno or node.lineno
                digest = hashlib.sha256("\n".join(lines[first - 1 : last]).encode()).hexdigest()[:12]
                by_name[outer + node.name] = Function(outer + node.name, first, node.body[0].lineno, last, digest)
            else:  # what stands under a condition
                for field in ("body", "orelse", "finalbody"):
                    walk(getattr(node, field, []), outer)

    walk(ast.parse(text).body, "")
    return by_name


def statement_around(text: str, line: int) -> range:
    """Return the lines of the smallest statement around one; of one with a body, those of its head."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if line <= last:
                best = range(node.lineno, max(last, node.lineno) + 1)
    return best


@functools.cache
def importers(source: Path) -> dict[str, set[str]]:
    """Return, for each file of the program, the files that name it in an import."""
    files = {path.relative_to(source).as_posix(): path for path in sorted(source.rglob("*.py"))}
    by_target: dict[str, set[str]] = {}
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for module in _imported(node):
                place = module.removeprefix("orrery").lstrip(".").replace(".", "/")
                for target in (f"{place}.py", f"{place}/__init__.py"):
                    if target in files:
                        by_target.setdefault(target, set()).add(name)
    return by_target


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []
