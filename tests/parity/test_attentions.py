"""Patterns of a trace against transformers' eager attentions, of decoders, encoders and both sides of a pair."""

import pytest
import torch

from orrery.inspection.trace import trace
from tests.parity.helper import error, pair

IDS = torch.randint(3, 97, (2, 9), generator=torch.Generator().manual_seed(0))
TARGET = IDS[:, :6].flip(1)
REAL = torch.arange(9) < torch.tensor([[9], [5]])
BERT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
LLAMA = {**BERT, "num_key_value_heads": 2, "max_position_embeddings": 48}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 48}
BART = {
    "d_model": 32,
    **{f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", 2), ("attention_heads", 4))},
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 48),
    "max_position_embeddings": 48,
}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}


def compared(traced, theirs, prefix, where=None):
    """Return the greatest difference of all layers; padded queries have no pattern of theirs to compare."""
    assert len(theirs) == 2
    differences = []
    for layer, expected_BHLS in enumerate(theirs):
        pattern_BHLS = traced[f"{prefix.format(layer)}.pattern"]
        assert pattern_BHLS.shape == expected_BHLS.shape
        kept = None if where is None else where[:, None, :, None].expand_as(pattern_BHLS)
        differences.append(error(pattern_BHLS, expected_BHLS, kept))
    return max(differences)


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize(
    ("kind", "auto", "config"),
    [
        ("gpt2", "AutoModelForCausalLM", GPT2),
        ("llama", "AutoModelForCausalLM", LLAMA),
        ("bert", "AutoModelForMaskedLM", {**BERT, "max_position_embeddings": 48}),
    ],
    ids=["gpt2", "llama", "bert"],
)
def test_one_row(kind, auto, config, padded):
    both = pair(kind, auto=auto, **config)
    call = {"attention_mask": REAL.long()} if padded else {}
    with torch.no_grad():
        theirs = both.reference(IDS, output_attentions=True, **call)
    traced = trace(both.ours, IDS, **({"real": REAL} if padded else {}))
    real = REAL if padded else None
    assert error(traced.logits, theirs.logits, None if real is None else real) < 1e-9
    assert compared(traced, theirs.attentions, "blocks.{}.attention", real) < 1e-9


@pytest.mark.parametrize(("kind", "config"), [("bart", BART), ("t5", T5)], ids=["bart", "t5"])
def test_source_and_target(kind, config):
    both = pair(kind, auto="AutoModelForSeq2SeqLM", **config)
    with torch.no_grad():
        theirs = both.reference(IDS, decoder_input_ids=TARGET, output_attentions=True)
    traced = trace(both.ours, IDS, TARGET)
    assert compared(traced, theirs.encoder_attentions, "encoder.blocks.{}.attention") < 1e-9
    assert compared(traced, theirs.decoder_attentions, "blocks.{}.attention") < 1e-9
    assert compared(traced, theirs.cross_attentions, "blocks.{}.cross") < 1e-9


def test_the_comparison_sees_a_head_in_another_place():
    both = pair("gpt2", **GPT2)
    with torch.no_grad():
        theirs = both.reference(IDS, output_attentions=True)
    traced = trace(both.ours, IDS)
    assert compared(traced, [x.roll(1, dims=1) for x in theirs.attentions], "blocks.{}.attention") > 1e-3
