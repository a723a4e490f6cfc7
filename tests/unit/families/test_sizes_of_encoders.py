"""The published sizes of encoders, counted on the meta device."""

import pytest
import torch

from orrery.families import load_family

LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
CASED = {"vocab_size": 28996}
ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1}

ALBERT = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}


@pytest.mark.parametrize(
    ("family", "architecture", "config", "parameters"),
    [
        ("bert", "BertModel", {}, 109_482_240),
        ("bert", "BertModel", LARGE, 335_141_888),
        ("bert", "BertModel", CASED, 108_310_272),
        ("bert", "BertModel", {**LARGE, **CASED}, 333_579_264),
        ("distilbert", "DistilBertModel", {}, 66_362_880),
        ("albert", "AlbertModel", ALBERT, 11_683_584),
        ("electra", "ElectraModel", {}, 13_483_008),
        ("modernbert", "ModernBertForMaskedLM", {}, 149_655_232),
        ("xlm_roberta", "XLMRobertaModel", {**ROBERTA, "vocab_size": 250_002}, 278_043_648),
        ("roberta", "RobertaModel", ROBERTA, 124_645_632),
        ("roberta", "RobertaModel", {**LARGE, **ROBERTA}, 355_359_744),
    ],
    ids=str,
)
def test_size(family, architecture, config, parameters):
    spec = load_family(family).spec({"architectures": [architecture], **config})
    with torch.device("meta"):
        model = spec.build(0)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
