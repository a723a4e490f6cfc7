"""Files of earlier years: other names, buffers beside the weights, two copies of a tied tensor, unnamed heads."""

import re

import pytest
import torch
from tests.goldens.cases import IMAGES
from tests.parity.oracle import randomise

from orrery.checkpoints.rules import to_theirs
from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.errors import ModelFileError
from orrery.exchange.reading.files import read_json
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import from_theirs, weights_of
from orrery.exchange.saving.save import save_model
from orrery.families import current_names, load_family, names, rules_of, spec_of
from tiny_models import randomised

EMBEDDINGS = "bert.embeddings.word_embeddings.weight"


def written(folder, family, **config):
    """Save a tiny model of a family and return the folder, the model and its tensors under their current names."""
    rules = load_family(family)
    config = {**rules.TINY, **config}
    model = rules.spec(config).build(0).eval()
    randomise(model, seed=0)
    save_model(folder, model, family, config)
    return folder, model, read_tensors(folder / "model.safetensors")


def same(model, folder):
    """Say whether a folder holds the same weights."""
    before, after = weights_of(model), weights_of(read(folder).model)
    return before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


MASK = {"bias": torch.ones(1, 1, 48, 48, dtype=torch.bool).tril(), "masked_bias": torch.tensor(-1e4)}
FREQUENCIES = {"rotary_emb.inv_freq": torch.ones(2)}
PUBLISHED = {
    "gpt2": ("transformer.", "h.{}.attn", MASK),
    "openai_gpt": ("transformer.", "h.{}.attn", {"bias": MASK["bias"].float()}),
    "bloom": ("transformer.", "", {}),
    "opt": ("model.", "", {}),
    "gptj": ("", "transformer.h.{}.attn", MASK),
    "gpt_neo": ("", "transformer.h.{}.attn.attention", MASK),
    "gpt_neox": ("", "gpt_neox.layers.{}.attention", {**MASK, **FREQUENCIES}),
    "llama": ("", "model.layers.{}.self_attn", {**FREQUENCIES, "rotary_emb.cos_cached": torch.ones(1, 1, 48, 4)}),
    "falcon": ("", "", {}),
}
"""What the published names lack, the attention of a layer, and the buffers beside its weights."""


@pytest.mark.parametrize("family", PUBLISHED)
def test_a_decoder_as_it_was_published(tmp_path, family):
    prefix, attention, buffers = PUBLISHED[family]
    folder, model, tensors = written(tmp_path, family)
    old = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    assert not prefix or not set(old) & set(tensors) - {"lm_head.weight"}
    for layer in range(2):
        old |= {f"{attention.format(layer)}.{name}": tensor.clone() for name, tensor in buffers.items()}
    if model.head.vocabulary.weight is model.embed.token.weight:
        table = next(name for name in old if old[name].shape == model.embed.token.weight.shape)
        old["lm_head.weight"] = old[table].clone()
    write_tensors(folder / "model.safetensors", old)
    assert same(model, folder)


def test_a_bias_of_a_layer_that_the_model_lacks_is_not_taken_for_a_buffer(tmp_path):
    folder, _, tensors = written(tmp_path, "gpt_neox")
    extra = {"gpt_neox.layers.2.attention.dense.bias": torch.ones(24)}
    write_tensors(folder / "model.safetensors", {**tensors, **extra})
    with pytest.raises(ModelFileError, match=r"1 unexpected: gpt_neox\.layers\.2"):
        read(folder)


def test_what_predicts_further_tokens_is_passed_over(tmp_path):
    folder, model, tensors = written(tmp_path, "qwen3_next")
    further = {"mtp.fc.weight": torch.ones(16, 32), "mtp.layers.0.mlp.gate.weight": torch.ones(4, 16)}
    write_tensors(folder / "model.safetensors", {**tensors, **further})
    assert same(model, folder)


def old_bert(tensors):
    """Return a masked language model's tensors as the first files had them."""
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    old = {}
    for name, tensor in tensors.items():
        end = ".".join(name.split(".")[-2:])
        old[name.removesuffix(end) + names.get(end, end)] = tensor
    return old


def test_bert_as_it_was_published(tmp_path):
    folder, model, tensors = written(tmp_path, "bert")
    old = {
        **old_bert(tensors),
        "bert.embeddings.position_ids": torch.arange(48)[None],
        "cls.predictions.decoder.weight": tensors[EMBEDDINGS].clone(),
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
        "bert.pooler.dense.weight": torch.ones(24, 24),
        "cls.seq_relationship.bias": torch.ones(2),
    }
    assert len(set(old) - set(tensors)) > 10
    write_tensors(folder / "model.safetensors", old)
    assert same(model, folder)


@pytest.mark.parametrize("copy", ["cls.predictions.decoder.bias", "cls.predictions.decoder.weight"])
def test_two_different_copies_of_a_tied_tensor_are_refused(tmp_path, copy):
    folder, _, tensors = written(tmp_path, "bert")
    shape = tensors["cls.predictions.bias" if copy.endswith("bias") else EMBEDDINGS].shape
    write_tensors(folder / "model.safetensors", {**tensors, copy: torch.ones(shape)})
    with pytest.raises(ModelFileError, match="two different ones"):
        read(folder)


ONE_NAME = ("transformer", "clip", "clip_text_model", "siglip", "siglip_text_model", *IMAGES)
"""The first is our own and has one name for its three equal tables; the others have no head over a vocabulary."""


@pytest.mark.parametrize("family", [name for name in names() if name not in ONE_NAME])
def test_a_file_may_hold_a_tied_head_under_both_names_if_they_are_equal(family):
    rules = load_family(family)
    tied = {"tie_word_embeddings": True} if "tie_word_embeddings" in rules.DEFAULTS else {}
    config = {**rules.TINY, **tied}
    model = randomised(spec_of(rules, config).build(0))
    own, every = weights_of(model), dict(model.named_parameters(remove_duplicate=False))
    copies = [name for name in every if name not in own and name.endswith("vocabulary.weight")]
    file_rules, (copy,) = rules_of(rules, config), copies
    file, (theirs,) = to_theirs(own, file_rules), [rule.theirs for rule in file_rules if rule.ours == (copy,)]
    assert theirs not in file
    again = from_theirs(model, {**file, theirs: every[copy].clone()}, file_rules)
    assert again.keys() == own.keys()
    assert all(torch.equal(again[name], own[name]) for name in own)
    with pytest.raises(ModelFileError, match=f"config.json ties {re.escape(theirs)} to .*two different ones"):
        from_theirs(model, {**file, theirs: every[copy] + 1}, file_rules)


def test_a_bare_model_under_the_names_of_a_whole_one(tmp_path):
    folder, model, tensors = written(tmp_path, "bert", architectures=["BertModel"])
    assert "embeddings.word_embeddings.weight" in tensors
    whole = {f"bert.{name}": tensor for name, tensor in tensors.items()}
    write_tensors(folder / "model.safetensors", {**whole, "cls.predictions.bias": torch.ones(61)})
    assert same(model, folder)


@pytest.mark.parametrize("family", ["deberta", "deberta_v2"])
def test_deberta_as_it_was_published(tmp_path, family):
    """Beside the masked head: the table of positions that is not added, and the head that found replaced tokens."""
    folder, model, tensors = written(tmp_path, family)
    names = {"cls.predictions.transform.": "lm_predictions.lm_head.", "cls.predictions.": "lm_predictions.lm_head."}
    old = {}
    for name, tensor in tensors.items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        old[name] = tensor
    old["deberta.embeddings.position_embeddings.weight"] = torch.ones(48, 24)
    old |= {f"mask_predictions.{part}.weight": torch.ones(24) for part in ("dense", "LayerNorm", "classifier")}
    assert "lm_predictions.lm_head.dense.weight" in old
    write_tensors(folder / "model.safetensors", old)
    assert same(model, folder)


def test_deberta_with_labels_leaves_the_heads_of_its_training(tmp_path):
    folder, model, tensors = written(tmp_path, "deberta_v2", architectures=["DebertaV2ForSequenceClassification"])
    extra = {"lm_predictions.lm_head.bias": torch.ones(61), "lm_predictions.lm_head.dense.weight": torch.ones(24, 24)}
    write_tensors(folder / "model.safetensors", {**tensors, **extra})
    assert same(model, folder)


def test_a_tensor_that_belongs_to_no_head_is_still_refused(tmp_path):
    folder, _, tensors = written(tmp_path, "bert")
    write_tensors(folder / "model.safetensors", {**tensors, "bert.encoder.layer.2.output.dense.bias": torch.ones(24)})
    with pytest.raises(ModelFileError, match=r"1 unexpected: bert\.encoder\.layer\.2"):
        read(folder)


def test_a_family_without_old_names_changes_nothing():
    tensors = {"model.norm.gamma": torch.ones(1)}
    assert current_names(load_family("mistral"), {}, tensors) == tensors


def test_a_family_is_saved_under_its_published_name(tmp_path):
    folder, model, _ = written(tmp_path, "xlm_roberta")
    config = read_json(folder / "config.json")
    assert config["model_type"] == "xlm-roberta"
    assert same(model, folder)


def test_a_control_token_that_the_family_reads_is_not_the_tokenizers(tmp_path):
    rules = load_family("roberta")
    config = {key: value for key, value in rules.TINY.items() if key != "pad_token_id"}
    save_model(tmp_path, rules.spec(config).build(0), "roberta", config, PadsWithSeven())
    written = read_json(tmp_path / "config.json")
    assert (written["pad_token_id"], written["eos_token_id"]) == (1, 7)


class PadsWithSeven:
    """A tokenizer whose every control token is number seven."""

    def save(self, folder):
        pass

    def special(self, name):
        return 7
