"""What the families that read images refuse, and what their old files say without meaning it."""

import pytest
import torch

from orrery.errors import ModelFileError, UsageError
from orrery.exchange.parity.compare import compare
from orrery.exchange.saving.save import save_model
from orrery.families import current_names, load_family
from orrery.language_model.load import load
from orrery.nn.spec import from_json, to_json

OLD_SIDE = {"torchscript": False, "pruned_heads": {}, "tf_legacy_loss": False, "max_length": 20, "num_beam_groups": 1}


def captioner(encoder=(), decoder=(), **top):
    rules = load_family("vision-encoder-decoder")
    sides = {"encoder": dict(encoder), "decoder": dict(decoder)}
    return rules.spec({**rules.TINY, **{key: {**rules.TINY[key], **side} for key, side in sides.items()}, **top})


def test_what_old_files_write_of_each_side_changes_nothing():
    assert captioner(OLD_SIDE, {**OLD_SIDE, "cross_attention_hidden_size": None}) == captioner()


@pytest.mark.parametrize(
    ("encoder", "decoder", "match"),
    [
        ({"model_type": "swin"}, {}, "encoder.model_type is not 'vit'"),
        ({}, {"model_type": "roberta"}, "decoder.model_type is not 'gpt2' or 'bert' or 'trocr'"),
        ({}, {"add_cross_attention": False}, "decoder.add_cross_attention is not True"),
        ({}, {"cross_attention_hidden_size": 24}, "cross_attention_hidden_size"),
        ({"pruned_heads": {"0": [1]}}, {}, "pruned_heads"),
    ],
)
def test_other_sides_are_refused_by_name(encoder, decoder, match):
    with pytest.raises(ModelFileError, match=match):
        captioner(encoder, decoder)


def test_a_target_begins_as_the_whole_file_says_or_else_its_decoder():
    ids = {"decoder_start_token_id": None}
    assert captioner((), {"decoder_start_token_id": 7}).start == 1
    assert captioner((), {"decoder_start_token_id": 7, "bos_token_id": 8}, **ids).start == 7
    assert captioner((), {"decoder_start_token_id": 7}, **ids, bos_token_id=9).start == 7
    assert captioner((), {"bos_token_id": 8}, **ids, bos_token_id=9).start == 9
    assert captioner((), {"bos_token_id": 8}, **ids).start == 8


def test_a_cross_attention_of_another_width_than_the_encoder_is_refused():
    rules, sides = load_family("vision-encoder-decoder"), {"is_decoder": True, "add_cross_attention": True}
    decoder = {"model_type": "trocr", **sides, "d_model": 32, "decoder_attention_heads": 4}
    with pytest.raises(ModelFileError, match="cross_attention_hidden_size = 20, and the encoder is 24 wide"):
        rules.spec({"encoder": rules.TINY["encoder"], "decoder": {**decoder, "cross_attention_hidden_size": 20}})


def test_old_buffers_are_left():
    names = ["decoder.transformer.h.0.attn.bias", "decoder.transformer.h.1.crossattention.masked_bias"]
    kept = "decoder.transformer.h.0.attn.c_attn.bias"
    renamed = current_names(load_family("vision-encoder-decoder"), {}, {n: torch.zeros(1) for n in [*names, kept]})
    assert renamed.keys() == {kept}


def test_an_architecture_without_a_known_head_is_refused():
    with pytest.raises(ModelFileError, match="ViTForMaskedImageModeling"):
        load_family("vit").spec({"architectures": ["ViTForMaskedImageModeling"]})


@pytest.mark.parametrize("family", ["vit", "vision_encoder_decoder"])
def test_a_language_model_of_images_says_so(tmp_path, family):
    rules = load_family(family)
    save_model(tmp_path, rules.spec(rules.TINY).build(0), family, dict(rules.TINY))
    with pytest.raises(UsageError, match="reads images"):
        load(tmp_path, say=lambda line: None).logits([[1, 2]])
    assert compare(tmp_path, tmp_path).first is None


def test_positions_that_were_saved_in_a_row_stand_on_their_grid():
    now = load_family("vit").spec(load_family("vit").TINY)
    old = to_json(now)
    old["stack"]["positions"]["learned"] = {"kind": "nn.positions.learned.LearnedPositions", "length": 10, "offset": 0}
    for added in ("bias", "first", "last"):
        del old["embed"][added]
    assert from_json(old) == now
