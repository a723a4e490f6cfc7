"""Looking in bounded memory: the definition takes queries in pieces, and what no pattern names is never stored."""

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch

from orrery.families import load_family
from orrery.inspection import definition
from orrery.inspection.checks import Mixing
from orrery.inspection.definition import DefinitionBeside, pieces
from orrery.inspection.recorder import Recorder
from orrery.inspection.trace import trace
from orrery.models.kernel_choice import caps_scores
from orrery.nn.attention.kernels import eager, sdpa
from tiny_models import randomised, smallest, tiny

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "trace_memory.py"
IDS = torch.randint(0, 61, (2, 11), generator=torch.Generator().manual_seed(0))
REAL = torch.arange(11) < torch.tensor([[11], [6]])
# Grouped heads, ALiBi, sinks, a window, DeBERTa's terms (a bias), T5's biases and attention over a source.
FAMILIES = ["gpt2", "llama", "bloom", "gpt_oss", "mistral", "deberta_v2", "t5", "deepseek_v2", "bert"]


def built(family, dtype=torch.float64):
    rules = load_family(family)
    return randomised(rules.spec(rules.TINY).build(0).to(dtype).eval())


def looked(model, **call):
    sources = 2 if hasattr(model, "reader") else 1
    return trace(model, *[IDS] * sources, **call)


@pytest.fixture
def three_queries_at_a_time(monkeypatch):
    """Let pieces have three queries; return how many the definition had at each call."""
    counted = []

    def counting(q_BHLC, kv, operands):
        counted.append(q_BHLC.shape[2])
        return eager(q_BHLC, kv, operands)

    monkeypatch.setattr(definition, "LARGEST", 2 * 3 * 11)
    monkeypatch.setattr(definition, "eager", counting)
    return counted


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_show_what_the_whole_definition_shows(family, padded, request):
    model = built(family)
    call = {"source_real" if hasattr(model, "reader") else "real": REAL} if padded else {}
    whole = looked(model, **call)
    counted = request.getfixturevalue("three_queries_at_a_time")
    traced = looked(model, **call)
    assert max(counted) == 3
    assert list(traced) == list(whole)
    for key in whole:
        torch.testing.assert_close(traced[key], whole[key], rtol=0, atol=1e-14)
    assert torch.equal(traced.logits, whole.logits)
    assert all(check.passed for check in traced.checks)


def test_what_is_kept_does_not_depend_on_what_else_is(three_queries_at_a_time):
    model = tiny("llama")
    every, one = trace(model, IDS), trace(model, IDS, keep=["blocks.1.attention.pattern"])
    assert list(one) == ["blocks.1.attention.pattern"]
    assert torch.equal(one["blocks.1.attention.pattern"], every["blocks.1.attention.pattern"])
    assert [(c.name, c.value) for c in one.checks] == [(c.name, c.value) for c in every.checks]


@pytest.mark.parametrize("rows", [slice(0, 2), slice(4, 5), slice(9, 11)])
def test_the_check_sees_one_wrong_row_of_a_layer_that_is_not_kept(rows, three_queries_at_a_time, monkeypatch):
    from orrery.inspection import trace as module

    calls = []

    def broken(*args, **kwargs):
        mixed = sdpa(*args, **kwargs).clone()
        calls.append(mixed)
        if len(calls) == 2:
            mixed[:, :, rows] += 1e-3
        return mixed

    monkeypatch.setattr(module, "sdpa", broken)
    traced = trace(tiny("gpt2"), IDS, keep=["blocks.0.attention.pattern"])
    failed = [check.name for check in traced.checks if not check.passed]
    assert "patterns times values are the kernel's output" in failed


def test_what_is_not_kept_is_gone_when_the_next_layer_runs():
    model, held = built("gpt2"), []
    alive_after_a_layer = []

    class Watch:
        def __call__(self, key, shown, used):
            if key.endswith(("scores", "pattern", "q", "k", "v", "mixed", "hidden", "added")):
                held.append((key, weakref.ref(shown)))
            if key.endswith("resid_pre"):
                gc.collect()
                alive_after_a_layer.extend(name for name, tensor in held if tensor() is not None)

    mixing = Mixing()
    recorder = Recorder(keep=["final"], watchers=[mixing, Watch()])
    with torch.no_grad():
        model.logits(IDS, kernel=DefinitionBeside(sdpa, recorder, mixing), taps=recorder)
    assert held
    assert alive_after_a_layer == []
    assert list(recorder.values) == ["final"]


def test_an_edit_of_one_pattern_replaces_the_kernel_of_that_attention_alone(three_queries_at_a_time):
    model = tiny("llama")  # four heads
    traced = trace(model, IDS, edit={"blocks.1.attention.pattern": lambda value, key: value * 0})
    assert three_queries_at_a_time == [3, 3, 3, 2] * 4 + [11]
    assert traced["blocks.1.attention.mixed"].abs().max() == 0
    assert torch.equal(traced["blocks.0.resid_post"], trace(model, IDS)["blocks.0.resid_post"])
    assert all(check.passed for check in traced.checks)


def test_an_edit_of_the_output_does_not_blame_the_kernel():
    traced = trace(tiny("gpt2"), IDS, edit={"blocks.0.attention.mixed": lambda value, key: value * 2})
    assert all(check.passed for check in traced.checks), traced.checks


def test_a_model_that_caps_its_scores_is_checked_too():
    model = built("gemma2")
    assert caps_scores(model.spec)
    traced = trace(model, IDS, keep=["*.pattern"])
    assert len(traced.values) == len(model.spec.stack.blocks)
    assert all(check.passed for check in traced.checks)


def test_the_definition_stands_beside_itself_too():
    model, mixing = tiny("gpt2"), Mixing()
    recorder = Recorder(watchers=[mixing])
    with torch.no_grad():
        model.logits(IDS, kernel=DefinitionBeside(eager, recorder, mixing), taps=recorder)
    assert mixing.worst == 0
    assert "blocks.1.attention.scores" in recorder.values


@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 1, 1, 1), (2, 3, 100, 4), (1, 2, 5, 1000)])
def test_pieces_cover_every_score_once(shape, monkeypatch):
    monkeypatch.setattr(definition, "LARGEST", 500)
    counted = torch.zeros(shape)
    for place in pieces(shape):
        counted[place] += 1
        assert counted[place].numel() <= max(500, shape[0] * shape[3])
    assert bool((counted == 1).all())


@pytest.mark.slow
@pytest.mark.alone
def test_a_trace_takes_little_more_than_the_plain_forward_and_what_is_kept(tmp_path):
    file = tmp_path / "record.json"
    subprocess.run([sys.executable, str(BENCHMARK), "--tokens", "1024", "--output", str(file)], check=True)
    recorded = json.loads(file.read_text(encoding="utf-8"))["found"]
    assert recorded["kept"] == 12 * 1024**2 * 4
    assert recorded["ratio"] <= 1.3, recorded


def test_a_model_whose_kernel_is_the_definition_makes_its_patterns_again():
    """Bit for bit what a trace keeps, with a cap on the scores; an attention whose scores are edited is not held."""
    model = smallest("gemma2")
    held = trace(model, IDS, keep=["logits"], defer=True)
    kept = trace(model, IDS)
    assert set(held.definitions) == {"blocks.0.attention", "blocks.1.attention"}
    for path, again in held.definitions.items():
        for name in ("scores", "pattern"):
            assert torch.equal(again.whole(name), kept[f"{path}.{name}"])
    assert torch.equal(held.logits, kept.logits)
    assert kept.definitions == {}
    edit = {"blocks.1.attention.scores": lambda value, key: value / 2}
    assert set(trace(model, IDS, edit=edit, defer=True).definitions) == {"blocks.0.attention"}
