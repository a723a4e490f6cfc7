"""What lm_eval asks of a model, without lm_eval: benchmarks/lm_eval_three_ways.py compares it with lm_eval's own."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from orrery.errors import MachineError, UsageError
from orrery.evaluation import lm_eval
from tiny_models import saved


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "llama", "llama")


def test_the_three_kinds_of_requests(folder: Path) -> None:
    answers = lm_eval.LmEvalAnswers(str(folder), batch_size="auto", device="cpu")
    ((nats, greedy),) = answers.likelihoods([("the cat", " sat")])
    assert nats == pytest.approx(answers.lm.likelihoods([("the cat", " sat")])[0].nats)
    assert isinstance(greedy, bool)
    text = "the cat sat on the mat, " * 5
    assert answers.rolling([text, "the dog"])[1] == pytest.approx(answers.lm.score("the dog").total, abs=1e-5)
    requests: list[tuple[str, dict[str, Any]]] = [
        ("the cat", {"until": ["the"], "max_gen_toks": 3, "do_sample": False, "temperature": 0.0}),
        ("the dog sat on", {"until": "x", "max_gen_toks": 2}),
        ("the", {"until": ["the"], "max_gen_toks": 3, "do_sample": False, "temperature": 0.0}),
    ]
    alone = [answers.written([one])[0] for one in requests]
    assert answers.written(requests) == alone
    assert alone[1] == answers.lm.generate("the dog sat on", max_new_tokens=2, temperature=0, stop="x")


def test_a_window_longer_than_the_context_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="max_length=49"):
        lm_eval.LmEvalAnswers(str(folder), max_length=49)


def test_how_tokens_are_drawn() -> None:
    assert lm_eval.drawing({}) == ([], 256, {"temperature": 0.0})
    greedy = {"until": "\n", "max_gen_toks": 5, "do_sample": False, "temperature": 0.7, "top_p": 0.9}
    assert lm_eval.drawing(greedy) == (["\n"], 5, {"temperature": 0.0})
    assert lm_eval.drawing({"temperature": 0.7, "top_k": 3}) == ([], 256, {"temperature": 0.7, "top_k": 3})
    assert lm_eval.drawing({"do_sample": True}) == ([], 256, {"temperature": 1.0})
    assert lm_eval.drawing({"temperature": 0.7, "typical_p": 0.3})[2] == {"temperature": 0.7, "typical_p": 0.3}
    with pytest.raises(UsageError, match="top_h"):
        lm_eval.drawing({"top_h": 0.3})


def test_without_lm_eval_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    with pytest.raises(MachineError, match="lm_eval is missing"):
        lm_eval.register()


def test_it_is_registered_by_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, type] = {}

    class LM:
        def __init__(self) -> None:
            self._rank = 0

    def register_model(name: str) -> Any:
        return lambda kind: known.setdefault(name, kind)

    parts = {"lm_eval": {}, "lm_eval.api": {}, "lm_eval.api.model": {"LM": LM}}
    parts["lm_eval.api.registry"] = {"register_model": register_model}
    for name, values in parts.items():
        module = types.ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    model = lm_eval.register()(pretrained=str(folder), batch_size=2, max_batch_size=None)
    assert isinstance(model, known["orrery"])
    request = types.SimpleNamespace(args=("the cat", " sat"))
    assert len(model.loglikelihood([request])[0]) == 2
    assert len(model.loglikelihood_rolling([types.SimpleNamespace(args=("the cat",))])) == 1
    assert model.generate_until([types.SimpleNamespace(args=("the", {"max_gen_toks": 1}))])
