"""What is done with a transformed model elsewhere: training, beginning from it, looking inside, counting, showing."""

import json

import pytest
import torch
from torch import nn

import orrery
from orrery import tuning
from orrery.cli.program import run as main
from orrery.errors import UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.own import save_own
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from orrery.inspection.trace import trace
from orrery.recipes.config import ModelSettings
from orrery.runs.begin import base_of
from orrery.tuning.lora import LoRA
from orrery.tuning.quantise import Quantise
from tiny_models import ALL, TOKENIZER, saved, tiny
from training_toy import toy_parts, toy_recipe, toy_run

LORA = LoRA(rank=2, dropout=0.1)


def model_of(*transforms):
    model = tiny("llama", torch.float32)
    for transform in transforms:
        transform.apply(model)
    return model


def run(folder, model, steps=6, **how):
    return toy_run(folder, toy_recipe(training__steps=steps), toy_parts(model), **how)


@pytest.mark.parametrize("base", [(), (Quantise(),)], ids=["plain", "int8"])
def test_an_adapter_learns_and_its_base_does_not(tmp_path, base):
    model = model_of(*base, LORA)
    before = {name: tensor.clone() for name, tensor in weights_of(model).items()}
    run(tmp_path / "run", model)
    after = weights_of(model)
    changed = {name for name in after if not torch.equal(after[name], before[name])}
    assert changed == {name for name in after if name.endswith(("lora_a", "lora_b"))}
    stored = read(tmp_path / "run" / "checkpoints" / "step-000006")
    assert stored.model.transforms == (*base, LORA)
    read_back = weights_of(stored.model)
    assert all(torch.equal(read_back[name], after[name]) for name in after)


def test_a_resumed_adapter_is_the_uninterrupted_one_byte_for_byte(tmp_path):
    run(tmp_path / "whole", whole := model_of(LORA))
    run(tmp_path / "parts", model_of(LORA), steps=6, **{})
    (tmp_path / "parts" / "checkpoints" / "step-000006" / "manifest.json").write_text("{")
    run(tmp_path / "parts", again := model_of(LORA), resume=True)
    assert all(torch.equal(weights_of(whole)[name], tensor) for name, tensor in weights_of(again).items())


def test_what_spec_json_does_not_describe_is_refused_before_the_first_step(tmp_path):
    model = model_of(LORA)
    model.extra = nn.Parameter(torch.zeros(2))
    with pytest.raises(UsageError, match=r"1 that spec\.json does not describe: extra"):
        run(tmp_path / "run", model)


def test_integer_weights_are_not_trained(tmp_path):
    with pytest.raises(UsageError, match=r"q\.weight is stored in int8, which no gradient can change"):
        run(tmp_path / "run", model_of(Quantise()))


def test_a_recipe_begins_from_the_merged_model_alone(tmp_path):
    model = model_of(LORA)
    save_own(tmp_path / "own", model, TOKENIZER, family="llama", config=ALL["llama"])
    with pytest.raises(UsageError, match=r"cannot begin from a model with transforms \(lora\)"):
        base_of(ModelSettings.model_validate({"from": str(tmp_path / "own")}))
    save_own(tmp_path / "merged", tuning.merge(model), TOKENIZER, family="llama", config=ALL["llama"])
    assert base_of(ModelSettings.model_validate({"from": str(tmp_path / "merged")})).stored.family == "llama"


def test_looking_inside_changes_nothing_and_its_checks_hold():
    model = model_of(Quantise(), LORA)
    ids = torch.arange(12)[None]
    with torch.no_grad():
        plain = model.logits(ids)
    seen = trace(model, ids)
    assert torch.equal(seen["logits"], plain)
    assert all(check.passed for check in seen.checks)


def test_cached_steps_are_the_full_forward():
    model = model_of(Quantise(), LORA)
    limits, prompt = Limits(12, 48), TOKENIZER.encode("the cat sat")
    answer = generate(model, [prompt], TOKENIZER, limits, sampler=sampler(temperature=0, vocabulary=TOKENIZER.size))[0]
    with torch.no_grad():
        for n, id in enumerate(answer.ids):
            ids = torch.tensor([[*prompt, *answer.ids[:n]]])
            assert int(model.logits(ids)[0, -1].argmax()) == id


@pytest.fixture
def folder(tmp_path):
    save_own(tmp_path / "own", model_of(Quantise(), LORA), TOKENIZER, family="llama", config=ALL["llama"])
    return tmp_path / "own"


def test_show_lists_the_transforms_and_counts_the_architecture(folder, capsys):
    main(["show", str(folder)])
    shown = capsys.readouterr().out
    assert "transform 1: quantise(targets=[*.blocks.*], leave=[*.router.*], bits=8, group=None)" in shown
    assert "transform 2: lora(rank=2, alpha=16, dropout=0.1, targets=[*.q, *.v])" in shown
    main(["show", "--json", str(folder)])
    content = json.loads(capsys.readouterr().out)
    assert [item["kind"] for item in content["transforms"]] == ["quantise", "lora"]


def test_show_diff_names_other_transforms(folder, tmp_path, capsys):
    plain = saved(tmp_path / "plain", "llama")
    main(["show", "--diff", str(folder), str(plain)])
    assert "transform 1" in capsys.readouterr().out
    main(["show", "--diff", str(folder), str(folder)])
    assert "the architectures are the same" in capsys.readouterr().out


@pytest.mark.parametrize("format", ["hf", "gguf"])
def test_export_merges_when_asked(folder, tmp_path, capsys, format):
    out = tmp_path / "out"
    assert main(["export", str(folder), format, str(out)]) == 2
    assert "--merge" in capsys.readouterr().err
    assert main(["export", str(folder), format, str(out), "--merge"]) == 0
    if format == "hf":
        ids = torch.arange(12)[None]
        with torch.no_grad():
            logits, expected = orrery.load(out).logits(ids), orrery.load(folder).logits(ids)
        assert float((logits - expected).abs().max()) < 1e-5


def test_merge_is_not_for_word_vectors(tmp_path, capsys):
    assert main(["export", str(tmp_path), "word2vec", str(tmp_path / "x"), "--merge"]) == 2
    assert "--merge belongs to gguf and hf" in capsys.readouterr().err
