"""The map from source files to the tests worth running: how it is made, read, and what is run for a path."""

import pytest

from map.related import MAP, Map, chosen
from mutation.mapping import MOST_BYTES, worth_running, write_map
from mutation.records import SOURCE, Records, Trace

NEAR, CHEAP, DEAR, ALL = (
    "tests/unit/nn/test_a.py::near",
    "tests/unit/nn/test_a.py::cheap[x, y]",
    "tests/parity/test_b.py::dear",
    "tests/system/test_c.py::runs_all",
)


@pytest.fixture
def records():
    lines = {
        "nn/a.py": {1: {NEAR, ALL}, 2: {CHEAP, ALL}, 3: {ALL}, 4: {DEAR}},
        "nn/b.py": {1: {CHEAP}},
        "text/c.py": {},
    }
    seconds = {NEAR: 0.5, CHEAP: 0.1, DEAR: 30.0, ALL: 15.0}
    trace = Trace(seconds, lines, {"tests/unit/nn/test_a.py": 0.4, "tests/system/test_c.py": 1.0})
    return Records({"nn/a.py:f: 1 -> 2 @2:3": [CHEAP, DEAR], "nn/a.py:f: 3 -> 4 @4:3": [CHEAP]}, trace)


@pytest.fixture
def project(tmp_path):
    for file in ("src/orrery/nn/a.py", "src/orrery/nn/b.py", "src/orrery/text/c.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("x = 1\n")
    for file in ("unit/nn/test_a.py", "unit/nn/deep/test_new_thing.py", "system/test_c.py", "parity/test_b.py"):
        (tmp_path / "tests" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / file).touch()
    return tmp_path


def test_what_caught_a_mutation_comes_first_then_what_covers_most_for_its_seconds(records):
    assert worth_running("nn/a.py", records) == [CHEAP, NEAR, ALL]
    assert worth_running("nn/a.py", records, seconds=70.0) == [CHEAP, NEAR, ALL, DEAR]
    assert worth_running("nn/unknown.py", records) == []


def test_the_map_is_read_as_it_was_written_and_written_the_same_again(records, project):
    path = project / "map.json"
    write_map(path, records, project / "src/orrery")
    known, text = Map.read(path), path.read_text(encoding="utf-8")
    assert known.tests == {"nn/a.py": [CHEAP, NEAR, ALL], "nn/b.py": [CHEAP]}
    assert known.seconds == {CHEAP: 0.1, NEAR: 0.5, ALL: 15.0}
    assert known.file_seconds["tests/unit/nn/test_a.py"] == 0.4
    write_map(path, records, project / "src/orrery")
    assert path.read_text(encoding="utf-8") == text
    records.trace.seconds["tests/unit/text/test_d.py::d"] = 1.0
    del records.trace.seconds[NEAR], records.trace.seconds[CHEAP]
    write_map(path, records, project / "src/orrery", complete=False)
    assert Map.read(path).tests == {}, "what a few tests run by the way is no map of a package"


def test_paths_share_the_seconds_and_what_is_not_known_has_its_folder(records, project):
    write_map(project / "map.json", records, project / "src/orrery")
    known = Map.read(project / "map.json")
    (project / "tests/system/test_c.py").unlink()
    choice = chosen(["src/orrery/nn"], known, project)
    assert choice.tests == [CHEAP, NEAR]
    assert choice.said == [f"left out, for its file is gone: {ALL}"]
    assert chosen(["src/orrery/nn"], known, project, most=0.6).tests == [CHEAP]
    assert chosen(["src/orrery/nn/new_thing.py"], known, project).whole == ["tests/unit/nn/deep/test_new_thing.py"]
    assert chosen(["src/orrery/nn/other.py"], known, project).whole == ["tests/unit/nn"]
    (project / "src/orrery/nn/other.py").write_text("x = 1\n")
    assert chosen(["src/orrery/nn"], known, project).whole == [], "a folder has the tests of its other files"
    assert chosen(["tests/unit/nn/test_a.py"], known, project).whole == ["tests/unit/nn/test_a.py"]
    assert chosen(["src/orrery/text/c.py"], known, project).said[0].endswith("no tests of its name are in tests/unit")


def test_the_written_map_is_small_and_names_what_there_is():
    known = Map.read()
    assert MAP.stat().st_size <= MOST_BYTES
    assert list(known.tests) == sorted(known.tests)
    missing = {file for file in known.tests if not (SOURCE / file).exists()}
    assert len(missing) <= len(known.tests) / 10, "many files have moved: tests/mutation/run.py --write-map"
