"""Each benchmark runs from a checkout, in a small form whose numbers mean nothing, and its record has a table."""

import ast
import json
import os
import subprocess
import sys

import pytest

from browser import chromium
from pages import ROOT, module

BENCHMARKS = ROOT / "benchmarks"
NEEDS = {
    "finetuning": ("sst2", "multi30k-en-de"),
    "lora": ("instructions-small",),
    "picture_speed": ("mnist-10k",),
    "pictures": ("mnist-10k",),
    "prepare_scale": ("eltec-novels",),
    "preferences": ("instructions-small",),
    "pretraining_gain": ("sst2",),
    "sentencepiece_speed": ("tokenizer-reference", "eltec-novels"),
    "tokenizer_speed": ("eltec-novels",),
    "word2vec": ("factbook", "eltec-novels", "word-similarity"),
}
"""The named data sets that a program reads."""
PACKAGES = {"lm_eval_server": "lm_eval", "lm_eval_three_ways": "lm_eval", "decoding": "xllamacpp"}
"""What is not in every environment that runs the tests."""
ELSEWHERE = {"exactness"}
"""Programs whose record ships with the package and has a page of its own."""
PROGRAMS = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem not in ("_record", "_apart", "breaks"))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_small_form_runs_and_its_record_is_shown(name, tmp_path, data_set):
    for needed in NEEDS.get(name, ()):
        data_set(needed)
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], exc_type=ImportError)
    if name == "page_speed":
        with chromium():
            pass  # skips where there is none
    file = tmp_path / "record.json"
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), "--small", "--output", str(file)],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: a bar of the benchmark is missed
    assert file.is_file(), done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    whole = json.loads(file.read_text(encoding="utf-8"))
    assert whole["header"]["small"]
    assert whole["header"]["program"] == f"benchmarks/{name}.py"
    if name not in ELSEWHERE:
        shown = module("_benchmarks").TABLES[name](whole["found"])
        assert shown.count("|") > 6


def test_every_program_has_a_table_and_says_what_it_measures():
    tables = set(module("_benchmarks").TABLES)
    assert sorted(tables | ELSEWHERE) == PROGRAMS
    assert not tables & ELSEWHERE
    for name in PROGRAMS:
        said = ast.get_docstring(ast.parse((BENCHMARKS / f"{name}.py").read_text(encoding="utf-8")))
        assert said, name
        assert f"benchmarks/{name}.py" in said, name


def test_no_record_was_made_beside_changes_of_its_program_or_recipes():
    found = [
        path.name for path in BENCHMARKS.glob("*.json") if json.loads(path.read_text("utf-8"))["header"]["changed"]
    ]
    assert found == []
