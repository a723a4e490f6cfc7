"""What ``import orrery`` offers: every name resolves when it is first used, and nothing heavy is loaded before."""

import ast
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import orrery
from orrery.cli import start

SOURCE = Path(orrery.__file__).parents[1]


@pytest.mark.parametrize("name", dir(orrery))
def test_every_name_is_what_it_says(name):
    attribute = orrery.__version__ if name == "__version__" else orrery.__getattr__(name)
    assert attribute is getattr(orrery, name)
    if name in orrery._MODULES:
        assert attribute is import_module(f"orrery.{name}")
    elif name in orrery._ATTRIBUTES and name != "pipeline":
        assert attribute.__name__ == name


@pytest.mark.parametrize("name", ["no_such_name", "nn.norms", "cli"])
def test_a_name_that_is_not_offered_is_no_attribute(name):
    with pytest.raises(AttributeError, match=f"module 'orrery' has no attribute {name!r}"):
        orrery.__getattr__(name)
    assert not hasattr(orrery, "no_such_name")


def test_neither_the_package_nor_the_way_into_the_program_loads_what_takes_time():
    # A signal that comes before the program can catch it is a traceback.
    looked = "import orrery; print(*dir(orrery)); import orrery.cli.start; print(*sys.modules)"
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); {looked}"
    printed = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout
    offered, loaded = (set(line.split()) for line in printed.splitlines())
    assert offered == set(dir(orrery))
    assert loaded >= {"orrery", "orrery.cli.start"}
    assert loaded.isdisjoint({"typing", "torch", "cyclopts", "rich"})


@pytest.mark.parametrize(("name", "starts"), [("__main__", 1), ("orrery.__main__", 0)])
def test_python_dash_m_orrery_starts_the_program_and_importing_it_does_not(name, starts, monkeypatch):
    calls = []
    monkeypatch.setattr(start, "main", lambda: calls.append(name))
    runpy.run_path(str(SOURCE / "orrery" / "__main__.py"), run_name=name)
    assert len(calls) == starts


def test_a_type_checker_finds_every_name_where_the_program_does():
    tree = ast.parse(Path(orrery.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "." in (node.module or "")]
    assert {alias.asname: node.module for node in imports for alias in node.names} == orrery._ATTRIBUTES
    assert (Path(orrery.__file__).parent / "py.typed").is_file()
