"""The head that an objective needs: kept, the family's own, renewed, or new beside the others."""

import json

import pytest
import torch

from orrery.errors import UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.nn.heads import Last, Mean
from orrery.recipes.read import check_recipe
from orrery.runs.assemble import assemble
from orrery.runs.execute import make_parts
from orrery.text.special import framed_tokenizer
from orrery.training.folder import open_run_folder
from orrery.training.loop import Trainer
from tiny_models import TOKENIZER, randomised

FRAMED = framed_tokenizer(TOKENIZER, "bert")
BERT = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 48, "vocab_size": FRAMED.size,
}  # fmt: skip
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 48, "vocab_size": TOKENIZER.size}


def base(folder, family="bert", **config):
    shape = {"bert": BERT, "gpt2": GPT2}[family] | config
    model = randomised(load_family(family).spec(shape).build())
    save_model(folder, model, family, shape, FRAMED if family == "bert" else TOKENIZER)
    return folder


def rows(tmp_path, labels=("no", "yes")):
    path = tmp_path / f"{'-'.join(labels)}.csv"
    lines = [f"the cat sat {n},{labels[n % len(labels)]}" for n in range(12)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def recipe(data, model, **more):
    return check_recipe(
        {
            "name": "labels",
            "model": model,
            "data": {"kind": "labelled", "train": data, "split": {"every": 4}},
            "batches": {"length": 24, "size": 4},
            "objective": "classification",
            "training": {"steps": 3, "precision": "float32", "optimizer": {"rate": 0.01}},
            "logging": {"every": 1},
            **more,
        },
        "a test",
    )


def trained(settings, folder):
    with open_run_folder(folder) as opened:
        Trainer(make_parts(settings), settings, opened).run()
    return folder


def test_an_encoder_gets_the_class_that_its_family_publishes(tmp_path):
    folder = base(tmp_path / "bert")
    assembly = assemble(recipe(rows(tmp_path), {"from": str(folder)}))
    assert assembly.spec.head_names == ("sequence",)
    assert assembly.config["architectures"] == ["BertForSequenceClassification"]
    assert assembly.config["id2label"] == {"0": "no", "1": "yes"}
    before, after = read(folder).model, assembly.parts.model
    assert torch.equal(
        before.stack.blocks[1].attention.branch.q.weight, after.stack.blocks[1].attention.branch.q.weight
    )
    assert "4 new" in assembly.parts.notes[0]


@pytest.mark.parametrize("labels", [("no", "yes"), ("x", "y", "z")])
def test_what_was_trained_is_what_transformers_loads(tmp_path, labels):
    transformers = pytest.importorskip("transformers")
    folder = base(tmp_path / "bert")
    run = trained(recipe(rows(tmp_path, labels), {"from": str(folder)}), tmp_path / "run")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(run / "final").eval()
    assert theirs.config.id2label == dict(enumerate(labels))
    ids = torch.tensor([FRAMED.frame("the cat sat").ids])
    ours = read(run).model
    assert (theirs(ids).logits - ours.logits(ids)).abs().max() < 1e-5
    assert ours.spec.heads["sequence"].names == labels


def test_a_checkpoint_knows_the_labels_too(tmp_path):
    run = trained(recipe(rows(tmp_path), {"from": str(base(tmp_path / "bert"))}), tmp_path / "run")
    stored = read(run / "checkpoints" / "step-000003")
    assert stored.model.spec.heads["sequence"].names == ("no", "yes")
    assert (stored.family, stored.config["architectures"]) == ("bert", ["BertForSequenceClassification"])


def test_a_classifier_of_the_same_labels_goes_on(tmp_path):
    first = trained(recipe(rows(tmp_path), {"from": str(base(tmp_path / "bert"))}), tmp_path / "first")
    again = assemble(recipe(rows(tmp_path, ("yes", "no")), {"from": str(first)}))
    assert "0 new" in again.parts.notes[1]
    head = read(first).model.heads["sequence"].labels.weight
    assert torch.equal(again.parts.model.heads["sequence"].labels.weight, head)
    assert again.spec.heads["sequence"].names == ("no", "yes")


@pytest.mark.parametrize("labels", [("cat", "dog"), ("a", "b", "c")])
def test_a_classifier_of_other_labels_keeps_all_but_its_last_map(tmp_path, labels):
    first = trained(recipe(rows(tmp_path), {"from": str(base(tmp_path / "bert"))}), tmp_path / "first")
    again = assemble(recipe(rows(tmp_path, labels), {"from": str(first)}))
    before, after = read(first).model.heads["sequence"], again.parts.model.heads["sequence"]
    assert after.labels.weight.shape == (len(labels), 32)
    assert not torch.equal(after.labels.weight[:2], before.labels.weight)
    assert torch.equal(after.pooler.transform[0][0].linear.weight, before.pooler.transform[0][0].linear.weight)
    assert again.spec.heads["sequence"].names == labels
    assert any("new: heads.sequence.labels.bias, heads.sequence.labels.weight" in note for note in again.parts.notes)


def test_a_decoder_gets_a_head_over_its_last_token_beside_its_own(tmp_path):
    folder = base(tmp_path / "gpt2", "gpt2")
    run = trained(recipe(rows(tmp_path), {"from": str(folder)}), tmp_path / "run")
    model = read(run).model
    assert model.spec.head_names == ("language_model", "sequence")
    assert model.spec.heads["sequence"].pooler.pool == Last()
    assert model.spec.heads["sequence"].names == ("no", "yes")
    config = json.loads((run / "final" / "config.json").read_text())
    assert config["architectures"] == ["GPT2ForSequenceClassification"]
    assert config["id2label"] == {"0": "no", "1": "yes"}


def test_a_head_of_the_recipe_is_filled_in(tmp_path):
    model = {"from": str(base(tmp_path / "bert")), "heads": {"sequence": {"kind": "sequence", "pool": "mean"}}}
    assembly = assemble(recipe(rows(tmp_path), model))
    assert assembly.spec.head_names == ("masked", "sequence")
    head = assembly.spec.heads["sequence"]
    assert (head.pooler.pool, head.labels, head.names) == (Mean(), 2, ("no", "yes"))
    assert assembly.family is None


def test_a_new_model_gets_the_head_as_well(tmp_path):
    config = {key: value for key, value in BERT.items() if key != "vocab_size"}
    tokenizer = {"kind": "byte_bpe", "vocabulary": 264, "frame": "bert"}
    values = recipe(rows(tmp_path), {"family": "bert", "config": config}, tokenizer=tokenizer)
    assembly = assemble(values)
    assert assembly.spec.head_names == ("sequence",)
    assert assembly.tokenizer.size == 264


def test_a_head_of_another_number_of_labels_is_refused(tmp_path):
    model = {"from": str(base(tmp_path / "bert")), "heads": {"sequence": {"kind": "sequence", "labels": 5}}}
    with pytest.raises(UsageError, match="gives 5 labels, the data have 2"):
        assemble(recipe(rows(tmp_path), model))
