"""A run that begins from a model: its weights, its tokenizer, new heads, frozen parts; nothing is taken silently."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import orrery
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.laws.models import random_ids
from orrery.models.model import LANGUAGE_MODEL
from orrery.recipes.read import as_yaml, check_recipe
from orrery.runs.assemble import assemble
from orrery.runs.execute import make_parts
from orrery.text.train import train_tokenizer
from orrery.training.folder import open_run_folder
from orrery.training.loop import Trainer
from tiny_models import TEXT, TOKENIZER, saved


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return saved(tmp_path / "base", "gpt2")


def recipe(base: Path, tmp_path: Path, model: dict[str, Any] | None = None, **training: Any) -> Any:
    text = tmp_path / "notes.txt"
    text.write_text(TEXT * 20, encoding="utf-8")
    values = {
        "name": "again",
        "model": {"from": str(base), **(model or {})},
        "data": {"train": str(text), "split": {"tail": 0.2}},
        "batches": {"length": 16, "size": 2},
        "training": {"steps": 3, "precision": "float32", "optimizer": {"rate": 0.01}, **training},
        "logging": {"every": 1},
    }
    return check_recipe(values, "a test")


def trained(settings: Any, folder: Path) -> Any:
    with open_run_folder(folder) as opened:
        Trainer(make_parts(settings), settings, opened).run()
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_first_loss_is_that_of_the_model(tmp_path, family):
    base = saved(tmp_path / "base", family)
    settings = recipe(base, tmp_path, {"dropout": 0.0})
    assembly = assemble(settings)
    batch = assembly.parts.source.batch(0)
    stored = read(base).model
    expected = torch.nn.functional.cross_entropy(
        stored.logits(batch["ids"]).flatten(0, 1), batch["targets"].flatten(), ignore_index=-100
    )
    first = trained(settings, tmp_path / "run")[0]
    assert abs(first["train/loss"] - float(expected.detach())) < 1e-6
    assert assembly.tokenizer.fingerprint == read(base).tokenizer.fingerprint


def test_a_run_is_a_beginning_too_and_its_end_is_loaded_by_transformers(base, tmp_path):
    trained(recipe(base, tmp_path), tmp_path / "first")
    again = recipe(tmp_path / "first", tmp_path)
    assert torch.equal(
        assemble(again).parts.model.embed.token.weight, read(tmp_path / "first").model.embed.token.weight
    )
    trained(again, tmp_path / "second")
    lm = orrery.load(tmp_path / "second", say=lambda line: None)
    assert json.loads((tmp_path / "second" / "final" / "config.json").read_text())["model_type"] == "gpt2"
    assert lm.generate("the cat", max_new_tokens=3) is not None


def test_what_was_loaded_what_is_new_and_what_learns_is_said(base, tmp_path):
    model = {"heads": {"value": {"kind": "token", "labels": 1}}, "freeze": ["stack.blocks.0.*"]}
    notes = assemble(recipe(base, tmp_path, model)).parts.notes
    whole = len(weights_of(read(base).model))
    assert f"{whole} tensors loaded, 2 new, 0 left" in notes[0]
    assert "heads.value.labels.weight" in notes[1]
    assert any("frozen: 16 tensors" in note for note in notes)
    assert "head value: new, and the objective causal does not train it" in notes


def test_frozen_parts_keep_their_bytes_and_the_others_learn(base, tmp_path):
    model = {"freeze": ["stack.blocks.0.*", "embed.*"]}
    trained(recipe(base, tmp_path, model), tmp_path / "run")
    before, after = (weights_of(read(folder).model) for folder in (base, tmp_path / "run"))
    for name in before:
        frozen = name.startswith(("stack.blocks.0.", "embed."))
        assert torch.equal(before[name], after[name]) == frozen, name


@pytest.mark.parametrize(("family", "kind"), [("bert", "sequence"), ("llama", "sequence"), ("t5", "token")])
def test_a_new_head_on_an_encoder_a_decoder_and_an_encoder_decoder(tmp_path, family, kind):
    from orrery.exchange.saving.save import save_model
    from orrery.families import load_family
    from orrery.objectives.causal import CausalLanguageModel
    from orrery.runs.begin import base_of
    from orrery.runs.building import prepared, read_spec

    rules = load_family(family)
    folder = tmp_path / family
    save_model(folder, rules.spec(rules.TINY).build(), family, rules.TINY)
    pool = {"pool": "first"} if kind == "sequence" else {}
    settings = recipe(folder, tmp_path, {"heads": {"mood": {"kind": kind, "labels": 3, **pool}}})
    base = base_of(settings.model)
    spec = read_spec(settings.model, {}, base)
    stored = {name: tensor.clone() for name, tensor in weights_of(base.stored.model).items()}
    model, notes = prepared(spec.build(), settings, CausalLanguageModel(), TOKENIZER, base)
    batch = {name: random_ids(2, 5) for name in model.spec.inputs}
    assert model(batch, ["mood"])["mood"].shape == ((2, 3) if kind == "sequence" else (2, 5, 3))
    assert all(torch.equal(model.get_parameter(name), tensor) for name, tensor in stored.items())
    assert f"{len(stored)} tensors loaded, 2 new, 0 left" in notes[0]


def test_a_run_with_a_head_of_its_own_is_saved_and_read_again(base, tmp_path):
    settings = recipe(base, tmp_path, {"heads": {"value": {"kind": "token", "labels": 1}}})
    trained(settings, tmp_path / "run")
    model = read(tmp_path / "run").model
    assert model.spec.head_names == (LANGUAGE_MODEL, "value")
    assert model({"ids": random_ids(1, 4)}, ["value"])["value"].shape == (1, 4, 1)


REFUSED = [
    ({"family": "gpt2"}, "exactly one of family, spec and from"),
    ({"config": {"n_layer": 3}}, "config belongs to a new model"),
    ({"freeze": ["blocks.*"]}, "no parameter is called 'blocks"),
    ({"freeze": ["*"]}, "nothing to learn"),
    ({"heads": {"hidden": {"kind": "token", "labels": 1}}}, "has one of this name"),
    ({"heads": {LANGUAGE_MODEL: {"kind": "token", "labels": 1}}}, "has one of this name"),
    ({"heads": {"value": {"kind": "other", "labels": 1}}}, "model.heads.value: kind must be"),
    ({"heads": {"value": {"kind": "token", "labels": 0}}}, "model.heads.value.labels"),
    ({"form": "x"}, "did you mean 'from'"),
]


@pytest.mark.parametrize(("model", "says"), REFUSED)
def test_what_cannot_be_is_refused(base, tmp_path, model, says):
    with pytest.raises(UsageError, match=says):
        assemble(recipe(base, tmp_path, model))


def test_a_model_without_a_tokenizer_asks_for_one(base, tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (base / name).unlink()
    with pytest.raises(UsageError, match="has no tokenizer"):
        assemble(recipe(base, tmp_path))


def test_another_tokenizer_that_does_not_fit_is_refused_with_what_helps(base, tmp_path):
    values = recipe(base, tmp_path).model_dump(by_alias=True)
    values["tokenizer"] = {"kind": "byte_bpe", "vocabulary": 300}
    (tmp_path / "notes.txt").write_text(" ".join(f"word{number}" for number in range(999)), encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        assemble(check_recipe(values, "a test"))
    assert refused.value.hint == "leave the section tokenizer out: the model brings its own"


def test_a_text_that_the_tokenizer_does_not_know_is_named(tmp_path):
    (tmp_path / "latin.txt").write_text(TEXT, encoding="utf-8")
    train_tokenizer("character", [TEXT]).save(tmp_path / "latin")
    values = recipe(tmp_path, tmp_path).model_dump(by_alias=True)
    values["model"] = {"family": "gpt2", "config": {"n_embd": 8, "n_head": 1, "n_layer": 1}}
    values["tokenizer"] = {"file": str(tmp_path / "latin" / "tokenizer.json")}
    # The text repeats itself, which is said too.
    assert [note for note in assemble(check_recipe(values, "a test")).parts.notes if "leak" not in note] == []
    (tmp_path / "notes.txt").write_text("ώψξθ" * 200, encoding="utf-8")
    (said,) = (note for note in assemble(check_recipe(values, "a test")).parts.notes if "leak" not in note)
    assert said == "99.8% of the training tokens stand for text that the tokenizer does not know"


def test_only_a_model_that_exists_brings_a_tokenizer(base, tmp_path):
    values = recipe(base, tmp_path).model_dump(by_alias=True)
    values["model"] = {"family": "gpt2"}
    with pytest.raises(UsageError, match=r"tokenizer is missing"):
        check_recipe(values, "a test")


def test_the_recipe_is_written_with_the_word_that_is_read(base, tmp_path):
    import yaml

    settings = recipe(base, tmp_path)
    assert yaml.safe_load(as_yaml(settings))["model"]["from"] == str(base)
    assert check_recipe(yaml.safe_load(as_yaml(settings)), "again") == settings


def test_the_run_that_a_training_begins_from_is_not_replaced_by_it(base, tmp_path):
    trained(recipe(base, tmp_path), tmp_path / "run")
    with (
        pytest.raises(UsageError, match="which this training reads"),
        open_run_folder(tmp_path / "run", overwrite=True, inputs=[str(tmp_path / "run")]),
    ):
        pass


def test_a_base_that_has_moved_does_not_end_a_run(base, tmp_path):
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    trained(recipe(base, tmp_path, steps=4), whole)
    trained(recipe(base, tmp_path, steps=2), parted)
    moved = base.rename(tmp_path / "moved")
    settings = recipe(moved, tmp_path, steps=4)
    with open_run_folder(parted, resume=True) as opened:
        Trainer(make_parts(settings), settings, opened).run()
    assert read(parted).model.spec == read(whole).model.spec
    assert json.loads((parted / "metrics.jsonl").read_text().splitlines()[-1])["step"] == 4
    with pytest.raises(ModelFileError, match="does not exist"):
        assemble(recipe(base, tmp_path))
