"""A run that learns an adapter: it and new heads learn alone, it ends and goes on as any run, old recipes are read."""

import pytest
import torch
from tests.unit.training.test_begin import recipe, trained

from orrery.cli.program import run as main
from orrery.errors import UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.runs.assemble import assemble
from orrery.tuning.lora import LoRA
from tiny_models import saved

LORA = {"kind": "lora", "rank": 2, "dropout": 0.1}
HEAD = {"value": {"kind": "token", "labels": 1}}


@pytest.fixture
def base(tmp_path):
    return saved(tmp_path / "base", "llama")


def test_the_adapter_alone_learns_and_the_run_ends_with_it(base, tmp_path):
    from orrery.runs.execute import make_parts
    from orrery.runs.final import writer
    from orrery.training.folder import open_run_folder
    from orrery.training.loop import Trainer

    settings = recipe(base, tmp_path, {"adapter": LORA})
    assembly = assemble(settings)
    with open_run_folder(tmp_path / "run") as opened:
        Trainer(make_parts(settings), settings, opened).run()
    stored = read(tmp_path / "run" / "checkpoints" / "step-000003")
    before, after = weights_of(read(base).model), weights_of(stored.model)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert {name.rpartition(".")[2] for name in after.keys() - before.keys()} == {"lora_a", "lora_b"}
    assert any(bool(tensor.any()) for name, tensor in after.items() if name.endswith("lora_b"))
    assert stored.model.transforms == (LoRA(rank=2, dropout=0.1),)
    writer(settings, assembly)(stored.model, tmp_path / "final")
    again = read(tmp_path / "final")
    assert (again.family, again.model.transforms) == ("llama", stored.model.transforms)
    main(["export", str(tmp_path / "final"), "hf", str(tmp_path / "whole"), "--merge"])
    main(["export", str(tmp_path / "final"), "peft", str(tmp_path / "adapter")])
    assert (tmp_path / "adapter" / "adapter_config.json").is_file()


def test_a_new_head_learns_beside_it(base, tmp_path):
    settings = recipe(base, tmp_path, {"adapter": LORA, "heads": HEAD})
    model, notes = (parts := assemble(settings).parts).model, parts.notes
    learns = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {name for name in learns if "lora" not in name} == {n for n, _ in model.named_parameters() if "value" in n}
    assert any(line.startswith("adapter lora: ") for line in notes)
    assert any(line.startswith("beside the adapter learn 33 numbers") for line in notes)
    trained(settings, tmp_path / "run")
    again = read(tmp_path / "run").model
    assert again.transforms[0].learn == ("heads.value.*",)
    assert {name for name, parameter in again.named_parameters() if parameter.requires_grad} == learns


def test_the_seed_of_the_run_decides_what_it_begins_with(base, tmp_path):
    def first(seed):
        settings = recipe(base, tmp_path, {"adapter": LORA}).model_copy(update={"seed": seed})
        return weights_of(assemble(settings).parts.model)["stack.blocks.0.attention.branch.q.lora_a"]

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))


def test_a_resumed_run_is_the_uninterrupted_one(base, tmp_path):
    from orrery.runs.execute import make_parts
    from orrery.training.folder import open_run_folder
    from orrery.training.loop import Trainer

    settings = recipe(base, tmp_path, {"adapter": LORA}, steps=4).model_copy(deep=True)
    checkpoints = settings.checkpoints.model_copy(update={"every": 2})
    settings = settings.model_copy(update={"checkpoints": checkpoints})

    def run(name):
        with open_run_folder(tmp_path / name, resume=(tmp_path / name).exists()) as opened:
            Trainer(make_parts(settings), settings, opened).run()
        return weights_of(read(tmp_path / name / "checkpoints" / "step-000004").model)

    whole, _ = run("whole"), run("parts")
    (tmp_path / "parts" / "checkpoints" / "step-000004" / "manifest.json").write_text("{")
    assert all(torch.equal(whole[name], tensor) for name, tensor in run("parts").items())


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"adapter": {"kind": "lorra"}}, "model.adapter: no transform 'lorra'"),
        ({"adapter": {"kind": "lora", "rnk": 2}}, "model.adapter: lora has no field 'rnk'"),
        ({"adapter": {"kind": "lora", "rank": 0}}, "model.adapter: lora: rank is 0"),
        ({"adapter": {"kind": "lora", "targets": ["*.query"]}}, r"no linear is called '\*\.query'"),
        ({"adapter": LORA, "freeze": ["embed.*"]}, "freezes the model itself"),
        ({"adapter": LORA, "from": None, "family": "llama"}, "changes a model that exists"),
    ],
)
def test_what_cannot_be_is_refused(base, tmp_path, model, says):
    with pytest.raises(UsageError, match=says):
        assemble(recipe(base, tmp_path, model))


def test_a_transform_that_leaves_nothing_to_learn_is_refused(base, tmp_path):
    with pytest.raises(UsageError, match="stored in int8, which no gradient can change"):
        trained(recipe(base, tmp_path, {"adapter": {"kind": "quantise"}}), tmp_path / "run")
