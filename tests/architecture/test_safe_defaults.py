"""Nothing is replaced, trusted, gone on with or hushed unless it is asked for: the default of every such argument."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "orrery"
ASKED_FOR = ("allow_pickle", "force", "overwrite", "quiet", "resume", "trust_remote_code")


def defaults() -> dict[str, list[tuple[str, object]]]:
    """Return by argument where it has a default, and which."""
    by_argument: dict[str, list[tuple[str, object]]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            given = node.args
            plain = [*given.posonlyargs, *given.args]
            pairs = [*zip(plain[len(plain) - len(given.defaults) :], given.defaults, strict=True)]
            pairs += [(arg, value) for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
            for arg, value in pairs:
                where = f"{file.relative_to(SOURCE)}:{node.name}"
                by_argument.setdefault(arg.arg, []).append((where, ast.literal_eval(value) if _plain(value) else ...))
    return by_argument


def _plain(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant)


def test_what_must_be_asked_for_is_off() -> None:
    by_argument = defaults()
    assert sum(len(by_argument.get(name, [])) for name in ASKED_FOR) > 20
    wrong = [(name, where) for name in ASKED_FOR for where, value in by_argument.get(name, []) if value is not False]
    assert wrong == []
