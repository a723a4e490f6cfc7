"""The German of what the server says in English: each name of a check has one."""

import ast
import re
from pathlib import Path

import orrery
from orrery.page.assets import assets

ROOT = Path(orrery.__file__).parent


def _template(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def _names(path: Path) -> set[str]:
    """Return what the checks of a module are called, `{}` where that differs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {one.targets[0].id: one.value for one in ast.walk(tree) if isinstance(one, ast.Assign)
             and isinstance(one.targets[0], ast.Name) and one.targets[0].id == "name"}  # fmt: skip
    calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call) and one.args)
    first = (one.args[0] for one in calls if getattr(one.func, "id", getattr(one.func, "attr", "")) in WAYS)
    found = (_template(named.get(one.id, one) if isinstance(one, ast.Name) else one) for one in first)
    return {name for name in found if name is not None}


WAYS = ("Check", "_compare")


def test_every_check_has_a_name_in_german():
    german = re.findall(r'^\s*"([^"]+)": ?"', assets()["see/words/said.js"].decode(), re.MULTILINE)
    said = set().union(*(_names(path) for part in ("page", "inspection") for path in (ROOT / part).rglob("*.py")))
    assert len(said) > 40
    assert said - set(german) == set()
