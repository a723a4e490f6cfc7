"""Configurations and files of encoder-decoders as they were published, with keys and tensors of their day."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import current_names, load_family

SEARCH = {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True, "max_length": 142, "no_repeat_ngram_size": 3}
BART = {
    "_num_labels": 3, "activation_dropout": 0.0, "add_bias_logits": False, "classif_dropout": 0.0, "init_std": 0.02,
    "encoder_layerdrop": 0.0, "gradient_checkpointing": False, "num_hidden_layers": 2,
    "static_position_embeddings": False,
}  # fmt: skip
AFTER = {"add_final_layer_norm": False, "normalize_before": False, "normalize_embedding": True}
BEFORE = {"add_final_layer_norm": True, "normalize_before": True, "normalize_embedding": True}
PUBLISHED = {
    "bart": {**BART, **SEARCH, **AFTER},
    "mbart": {**BART, **BEFORE},
    "pegasus": {**BART, **BEFORE, "normalize_embedding": False, "static_position_embeddings": True},
    "marian": {
        **BART,
        **AFTER,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "bad_words_ids": [[7]],
    },
    "t5": {**SEARCH, "n_positions": 512, "output_past": True, "initializer_factor": 1.0, "is_gated_act": False},
}


@pytest.mark.parametrize("family", PUBLISHED)
def test_keys_of_their_day_are_known(family):
    rules = load_family(family)
    assert (
        rules.spec({**rules.TINY, **PUBLISHED[family]}) == rules.spec(rules.TINY)
        or "scale_embedding" in PUBLISHED[family]
    )


@pytest.mark.parametrize(
    ("family", "key", "value"),
    [
        ("bart", "normalize_before", True),
        ("mbart", "add_final_layer_norm", False),
        ("pegasus", "static_position_embeddings", False),
        ("marian", "normalize_embedding", True),
        ("bart", "tie_word_embeddings", False),
        ("t5", "feed_forward_proj", "gated-unheard_of"),
        ("t5", "feed_forward_proj", "gelu-gated"),
        ("mt5", "scale_decoder_outputs", True),
    ],
)
def test_what_would_change_the_numbers_is_refused(family, key, value):
    rules = load_family(family)
    with pytest.raises(ModelFileError, match=key):
        rules.spec({**rules.TINY, key: value})


def test_a_target_needs_a_first_token():
    with pytest.raises(ModelFileError, match="which token a target begins with"):
        load_family("mbart").spec({"decoder_start_token_id": None, "bos_token_id": None})


@pytest.mark.parametrize(
    ("family", "stale", "copy"),
    [
        ("t5", "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", "encoder.embed_tokens.weight"),
        ("bart", "encoder.version", "model.decoder.embed_tokens.weight"),
        ("marian", "model.decoder.embed_positions.weight", "model.encoder.embed_tokens.weight"),
    ],
)
def test_tensors_of_their_day_are_known(family, stale, copy):
    rules, shared = load_family(family), torch.ones(2)
    name = "shared.weight" if family == "t5" else "model.shared.weight"
    config = {"share_encoder_decoder_embeddings": True}
    renamed = current_names(rules, config, {name: shared, stale: torch.ones(3), copy: shared.clone()})
    assert renamed.keys() == {name}
    with pytest.raises(ModelFileError, match="two different ones"):
        current_names(rules, config, {name: shared, copy: -shared})


def test_separate_vocabularies_keep_their_names():
    names = {f"model.{side}.embed_tokens.weight": torch.zeros(1) for side in ("encoder", "decoder")}
    rules = load_family("marian")
    assert current_names(rules, {"share_encoder_decoder_embeddings": False}, names).keys() == names.keys()
