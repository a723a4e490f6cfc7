"""Backbones that were published without a head: their stream is the reference's, and there are no logits."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family, spec_of
from orrery.language_model.load import load
from tests.parity import oracle
from tests.parity.helper import error, random_ids
from tests.parity.oracle import REFERENCED
from tests.parity.stand_ins import class_of, has

DECODERS = sorted(
    name for name in REFERENCED if load_family(name).ARCHITECTURE.endswith(("ForCausalLM", "LMHeadModel"))
)


def bare(family):
    """Return the reference's backbone, random in every parameter."""
    rules = load_family(family)
    whole = class_of(rules.ARCHITECTURE)
    stem = rules.ARCHITECTURE.removesuffix("ForCausalLM").removesuffix("LMHeadModel")
    make = class_of(f"{stem}Model") if has(f"{stem}Model") else None
    if make is None or make.config_class is not whole.config_class:
        make = class_of(f"{stem}TextModel")
    more = {"word_embed_proj_dim": rules.TINY["hidden_size"]} if family == "opt" else {}
    settings = whole.config_class(**{**rules.TINY, **more, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0})
    kernel = "sdpa" if family == "falcon" else "eager"
    with oracle.widened(oracle.modelling(settings.model_type)):
        model = make._from_config(
            settings, attn_implementation=kernel, experts_implementation="eager", dtype=torch.float64
        )
    oracle.randomise(model, 0)
    return model.double().eval()


@pytest.mark.parametrize("family", DECODERS)
@torch.no_grad()
def test_a_backbone_has_the_stream_of_the_reference_and_no_logits(family, tmp_path):
    theirs, ids = bare(family), random_ids(2, 9, vocabulary=61)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load(tmp_path / "theirs")
    with oracle.widened(oracle.modelling(theirs.config.model_type)):
        expected = theirs(ids).last_hidden_state
    assert error(ours.hidden(ids), expected) < 1e-9
    with pytest.raises(UsageError, match="backbone without a head"):
        ours.logits(ids)
    ours.save(tmp_path / "ours")
    again, before = (load_file(tmp_path / side / "model.safetensors") for side in ("ours", "theirs"))
    assert again.keys() == before.keys()
    assert all(torch.equal(again[name], before[name]) for name in before)


@pytest.mark.parametrize(("family", "head"), [("llama", "lm_head.weight"), ("gpt_neox", "embed_out.weight")])
@torch.no_grad()
def test_a_backbone_is_found_in_the_file_of_a_whole_model_and_the_other_way_round(family, head, tmp_path):
    theirs, ids = bare(family), random_ids(2, 9, vocabulary=61)
    theirs.save_pretrained(tmp_path)
    stream, names = load(tmp_path).hidden(ids), load_file(tmp_path / "model.safetensors")
    prefix = {"llama": "model.", "gpt_neox": "gpt_neox."}[family]
    table = next(tensor for name, tensor in names.items() if name.startswith("embed_"))
    save_file(
        {**{prefix + name: tensor for name, tensor in names.items()}, head: table.clone()},
        tmp_path / "model.safetensors",
    )
    assert torch.equal(load(tmp_path).hidden(ids), stream)
    save_file(names, tmp_path / "model.safetensors")
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"architectures": [load_family(family).ARCHITECTURE], "tie_word_embeddings": True}
    (tmp_path / "config.json").write_text(json.dumps(config))
    whole = load(tmp_path)
    assert torch.equal(whole.hidden(ids), stream)
    assert error(whole.logits(ids), stream @ table.T) < 1e-12


def test_a_backbone_that_ends_with_a_projection_is_refused_by_name():
    rules = load_family("opt")
    config = {**rules.TINY, "architectures": ["OPTModel"], "hidden_size": 24, "word_embed_proj_dim": 16}
    with pytest.raises(ModelFileError, match="OPTModel"):
        spec_of(rules, config)


def test_another_head_of_a_decoder_is_refused_by_name(tmp_path):
    bare("llama").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["LlamaForTokenClassification"]}))
    with pytest.raises(ModelFileError, match="LlamaForTokenClassification"):
        load(tmp_path)
