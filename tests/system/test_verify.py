"""``orrery verify`` as users run it."""

import json
import os
import re
import subprocess
import sys

import pytest

from orrery.cli.program import run
from orrery.laws import cache, registry
from orrery.laws.evidence import Evidence


def test_everything_passes_and_the_evidence_has_its_shape(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(registry, "families", lambda: ["gpt2", "llama", "bert", "t5", "vit"])
    path = tmp_path / "evidence.json"
    assert run(["verify", "--workers", "1", "--json", str(path)]) == 0
    out = capsys.readouterr()
    evidence = json.loads(path.read_text())
    assert set(evidence) == {"checks", "not_run", "seconds"}
    assert all(set(e) == {"name", "law", "family", "passed", "value", "bound"} for e in evidence["checks"])
    assert all(e["passed"] is True and e["value"] <= e["bound"] for e in evidence["checks"])
    assert all(set(e) == {"name", "reason"} for e in evidence["not_run"])
    pairs = {(e["law"], e["family"]) for e in evidence["checks"]}
    for law in ("cache", "branching", "padding", "packing", "kernel", "checkpoint", "sight", "accumulation", "resume"):
        assert {(law, "gpt2"), (law, "llama")} <= pairs
    keys = [(e["law"], e["family"], e["name"]) for e in evidence["checks"]]
    assert len(set(keys)) == len(keys)
    assert f"all {len(keys)} checks passed" in out.out
    assert "the slide 1542M, here 1,557,611,200" in out.out
    assert "checking cache (gpt2)" in out.err
    assert "processor seconds: " in out.out
    # No part may become what the whole is waited for: shares, as seconds are another machine's.
    for part, bound in (("by check", 0.5), ("by family", 0.6)):
        seconds = evidence["seconds"][part]
        assert max(seconds.values()) < bound * sum(seconds.values()), seconds


def test_one_family(tmp_path, capsys):
    path = tmp_path / "evidence.json"
    assert run(["verify", "--family", "llama", "--json", str(path)]) == 0
    assert {e["family"] for e in json.loads(path.read_text())["checks"]} == {"llama"}


def test_a_failure_is_exit_1_and_is_shown_with_its_number(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(cache, "check", lambda family: iter([Evidence("bent", "cache", family, False, 0.5, 1e-9)]))
    monkeypatch.setattr(registry, "CHECKS", tuple(c for c in registry.CHECKS if c.law == "cache"))
    path = tmp_path / "evidence.json"
    assert run(["verify", "--workers", "1", "--json", str(path)]) == 1
    out = capsys.readouterr().out
    assert "FAIL cache (llama): bent: 0.5 is not within 1e-09" in out
    assert re.search(r"(\d+) of \1 checks FAILED", out)
    assert not any(e["passed"] for e in json.loads(path.read_text())["checks"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--family", "nobody"], "no laws are known for the family 'nobody'"),
        (["--json", f"{__file__}/x.json"], "Not a directory"),
    ],
)
def test_mistakes_are_exit_2_before_anything_runs(words, message, capsys):
    assert run(["verify", *words]) == 2
    assert message in capsys.readouterr().err


def test_it_needs_no_torch_to_be_asked_for_help():
    code = "import sys; from orrery.cli import verify; assert 'torch' not in sys.modules"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
