"""Every program of ``benchmarks`` has one flag for its record, and no record is written by hand."""

import argparse
import ast
import json
import re
import sys

import pytest

from pages import ROOT, pages

BENCHMARKS = ROOT / "benchmarks"
SHARED = ("_record", "_apart", "breaks")
"""Modules that programs import, and that measure nothing."""
PROGRAMS = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem not in SHARED)
RECORDS = sorted(path.stem for path in BENCHMARKS.glob("*.json"))
COMMAND = re.compile(r"(?<!evaluation/)\bbenchmarks/(?P<name>\w+)\.py(?P<words>(?: +[^`\s)(]+)*)")


@pytest.fixture(scope="module")
def record():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import _record

        yield _record
    finally:
        sys.path.remove(str(BENCHMARKS))


def source(name):
    return (BENCHMARKS / f"{name}.py").read_text(encoding="utf-8")


def calls(tree, name):
    """Return the calls of a function or a method of this name."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [node for node in nodes if getattr(node.func, "id", getattr(node.func, "attr", "")) == name]


def flags(name):
    """Return the flags of a program, with those of the program whose command line it takes."""
    tree = ast.parse(source(name))
    (shared,) = (node for node in ast.walk(ast.parse(source("_record"))) if getattr(node, "name", "") == "add_recipes")
    asked = calls(tree, "add_argument") + (calls(shared, "add_argument") if calls(tree, "add_recipes") else [])
    words = {arg.value for call in asked for arg in call.args if isinstance(arg, ast.Constant)}
    words |= {"--output", "--small", "--help"}
    for node in calls(tree, "add_argument"):  # such as f"--{name}" in a loop: anything fits
        words |= {"*"} if any(isinstance(arg, ast.JoinedStr) for arg in node.args) else set()
    return words | (flags("lm_eval_server") if "from lm_eval_server import" in source(name) else set())


def faults(text):
    """Return what a program does otherwise than the others."""
    tree, wrongs = ast.parse(text), []
    if "from lm_eval_server import" not in text:
        for name in ("parser", "parsed", "Record", "write"):
            wrongs += [] if calls(tree, name) else [f"it does not call {name}"]
    for call in calls(tree, "add_argument"):
        words = {arg.value for arg in call.args if isinstance(arg, ast.Constant)}
        wrongs += [f"a flag of its own: {word}" for word in words & {"--json", "-o", "--output", "--out", "--small"}]
    wrongs += ["a parser of its own"] if calls(tree, "ArgumentParser") else []
    wrongs += ["a record by default"] if re.search(r"__file__\)\.with_suffix|\.json\"\)\.write_text", text) else []
    return wrongs


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_writes_its_record_where_it_is_told_and_nowhere_else(name):
    assert faults(source(name)) == []


def test_a_program_of_its_own_ways_is_found():
    text = 'p = ArgumentParser()\np.add_argument("--json", default=Path(__file__).with_suffix(".json"))\n'
    wrongs = faults(text)
    assert {"a flag of its own: --json", "a parser of its own", "a record by default"} <= set(wrongs)
    assert "it does not call Record" in wrongs


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_was_written_by_its_program(record, name):
    whole = (BENCHMARKS / f"{name}.json").read_bytes()
    assert unsound(record, name, whole) == []


def unsound(record, name, whole):
    """Return what speaks against a record's having been written by its program as it stands."""
    content = json.loads(whole)
    if "header" not in content:
        return ["it has no header"]
    header, wrongs = content["header"], []
    wrongs += [f"no {key}" for key in record.HEADER if key not in header]
    wrongs += ["it was changed by hand"] if header.get("sha256") != record.digest(content["found"]) else []
    wrongs += ["it is of the small form"] if header.get("small") else []
    program = f"benchmarks/{name.partition('.')[0]}.py"
    return wrongs + ([f"its program is {header.get('program')}"] if header.get("program") != program else [])


def test_a_record_that_is_written_or_changed_by_hand_is_found(record, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks/text.py", "--rounds", "3", "--output", "x.json", "/some/where/run"])
    file = tmp_path / "text.json"
    options = argparse.Namespace(small=False, output=file)
    record.Record(options, ["numpy", "no-such-package"]).write({"seconds": 1.25})
    made = json.loads(file.read_text())
    assert unsound(record, "text", file.read_bytes()) == []
    assert made["header"]["command"] == "python benchmarks/text.py --rounds 3 run"
    assert made["header"]["versions"]["no-such-package"] is None
    assert "some" not in file.read_text()
    made["found"]["seconds"] = 1.2
    assert unsound(record, "text", json.dumps(made).encode()) == ["it was changed by hand"]
    assert unsound(record, "other", file.read_bytes()) == ["its program is benchmarks/text.py"]
    assert unsound(record, "text", b'{"seconds": 1.2}') == ["it has no header"]


def test_without_the_flag_nothing_is_written(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record.Record(argparse.Namespace(small=False, output=None)).write({})
    assert list(tmp_path.iterdir()) == []


def test_the_small_form_gives_way_to_what_is_asked_for(record, monkeypatch, capsys):
    def asked(*words):
        made = record.parser("what it does")
        made.add_argument("--rounds", type=int, default=9)
        made.add_argument("run", nargs="?")
        monkeypatch.setattr(sys, "argv", ["x.py", *words])
        return record.parsed(made, {"rounds": 1}, needs=["run"])

    assert (asked("--small").rounds, asked("--small", "--rounds", "4").rounds, asked("a").rounds) == (1, 4, 9)
    assert asked("--small").output is None
    with pytest.raises(SystemExit):
        asked()
    assert "not given: run" in capsys.readouterr().err


def commands():
    """Yield each command of a benchmark that a page or a program's own text prints, with where it stands."""
    texts = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in pages()}
    texts |= {f"benchmarks/{name}.py": ast.get_docstring(ast.parse(source(name))) or "" for name in PROGRAMS}
    for place, text in texts.items():
        for match in COMMAND.finditer(text):
            yield place, match["name"], [word.strip("[],;") for word in match["words"].split()]


def test_every_printed_command_is_one_that_its_program_takes():
    seen, bad = 0, []
    for place, name, words in commands():
        if name not in PROGRAMS:
            bad += [] if name in SHARED else [(place, name)]
            continue
        known = flags(name)
        own = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-"]
        seen += len(own)
        bad += [(place, name, word) for word in own if word not in known and "*" not in known]
    assert bad == []
    assert seen > 30
    assert "--rounds" not in flags("text")
