"""Published models and how many parameters they have: what every family must count to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Size:
    """A published model.

    Attributes:
        name: as its authors call it.
        family: whose file turns the configuration into a spec.
        config: what of its ``config.json`` decides the size.
        parameters: how many it has, each storage once.
        beside: numbers of its file that are no parameters to its authors: a routing correction, BART's last bias.
    """

    name: str
    family: str
    config: Mapping[str, Any]
    parameters: int
    beside: int = 0


def _gpt2(width: int, layers: int, heads: int) -> dict[str, Any]:
    return {"n_embd": width, "n_layer": layers, "n_head": heads}


def _llama(
    width: int, hidden: int, layers: int, heads: int, kv_heads: int, vocabulary: int = 32_000, tied: bool = False
) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "intermediate_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
    }


def _bert(name: str, width: int, layers: int, vocabulary: int, **more: Any) -> dict[str, Any]:
    return {
        "architectures": [name],
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": width // 64,
        "intermediate_size": 4 * width,
        **more,
    }


def _t5(width: int, hidden: int, layers: int, heads: int, head_width: int) -> dict[str, Any]:
    return {
        "vocab_size": 32_128,
        "d_model": width,
        "d_ff": hidden,
        "num_layers": layers,
        "num_heads": heads,
        "d_kv": head_width,
        "feed_forward_proj": "relu",
        "tie_word_embeddings": True,
    }


def _bart(width: int, layers: int) -> dict[str, Any]:
    ends = ("encoder", "decoder")
    return {
        "vocab_size": 50_265,
        "d_model": width,
        "max_position_embeddings": 1024,
        **{f"{end}_layers": layers for end in ends},
        **{f"{end}_attention_heads": 16 for end in ends},
        **{f"{end}_ffn_dim": 4 * width for end in ends},
    }


def _bloom(width: int, layers: int, heads: int) -> dict[str, Any]:
    return {"vocab_size": 250_880, "hidden_size": width, "n_layer": layers, "n_head": heads}


_MIXTRAL = {**_llama(4096, 14336, 32, 32, 8), "num_local_experts": 8, "num_experts_per_tok": 2}
_ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1}
_DEEPSEEK_V3 = {
    "vocab_size": 129_280,
    "hidden_size": 7168,
    "intermediate_size": 18_432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 3,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
}

SIZES: tuple[Size, ...] = (
    Size("GPT-2 small", "gpt2", _gpt2(768, 12, 12), 124_439_808),
    Size("GPT-2 medium", "gpt2", _gpt2(1024, 24, 16), 354_823_168),
    Size("GPT-2 large", "gpt2", _gpt2(1280, 36, 20), 774_030_080),
    Size("GPT-2 XL", "gpt2", _gpt2(1600, 48, 25), 1_557_611_200),
    Size("BERT base, uncased", "bert", _bert("BertModel", 768, 12, 30_522), 109_482_240),
    Size("BERT large, uncased", "bert", _bert("BertModel", 1024, 24, 30_522), 335_141_888),
    Size("BERT base, cased", "bert", _bert("BertModel", 768, 12, 28_996), 108_310_272),
    Size("BERT large, cased", "bert", _bert("BertModel", 1024, 24, 28_996), 333_579_264),
    Size("RoBERTa base", "roberta", _bert("RobertaModel", 768, 12, 50_265, **_ROBERTA), 124_645_632),
    Size("RoBERTa large", "roberta", _bert("RobertaModel", 1024, 24, 50_265, **_ROBERTA), 355_359_744),
    Size("T5 small", "t5", _t5(512, 2048, 6, 8, 64), 60_506_624),
    Size("T5 base", "t5", _t5(768, 3072, 12, 12, 64), 222_903_552),
    Size("T5 large", "t5", _t5(1024, 4096, 24, 16, 64), 737_668_096),
    Size("T5 3B", "t5", _t5(1024, 16_384, 24, 32, 128), 2_851_598_336),
    Size("T5 11B", "t5", _t5(1024, 65_536, 24, 128, 128), 11_307_321_344),
    Size("BART base", "bart", _bart(768, 6), 139_420_416, beside=50_265),
    Size("BART large", "bart", _bart(1024, 12), 406_291_456, beside=50_265),
    Size("Llama 7B", "llama", _llama(4096, 11_008, 32, 32, 32), 6_738_415_616),
    Size("Llama 13B", "llama", _llama(5120, 13_824, 40, 40, 40), 13_015_864_320),
    Size("Llama 33B", "llama", _llama(6656, 17_920, 60, 52, 52), 32_528_943_616),
    Size("Llama 65B", "llama", _llama(8192, 22_016, 80, 64, 64), 65_285_660_672),
    Size("Llama 2 70B", "llama", _llama(8192, 28_672, 80, 64, 8), 68_976_648_192),
    Size("Llama 3 8B", "llama", _llama(4096, 14_336, 32, 32, 8, 128_256), 8_030_261_248),
    Size("Llama 3 70B", "llama", _llama(8192, 28_672, 80, 64, 8, 128_256), 70_553_706_496),
    Size("Llama 3.1 405B", "llama", _llama(16_384, 53_248, 126, 128, 8, 128_256), 405_853_388_800),
    Size("Llama 3.2 1B, tied", "llama", _llama(2048, 8192, 16, 32, 8, 128_256, True), 1_235_814_400),
    Size("Llama 3.2 3B, tied", "llama", _llama(3072, 8192, 28, 24, 8, 128_256, True), 3_212_749_824),
    Size("Mistral 7B", "mistral", _llama(4096, 14_336, 32, 32, 8), 7_241_732_096),
    Size("Mixtral 8x7B", "mixtral", _MIXTRAL, 46_702_792_704),
    Size("BLOOM 560M", "bloom", _bloom(1024, 24, 16), 559_214_592),
    Size("BLOOM 7B1", "bloom", _bloom(4096, 30, 32), 7_069_016_064),
    Size("BLOOM 176B", "bloom", _bloom(14_336, 70, 112), 176_247_271_424),
    Size("DeepSeek-V3", "deepseek_v3", _DEEPSEEK_V3, 671_026_404_352, beside=14_848),
)

PRESETS: Mapping[str, int] = {
    "gpt3-125m": 125_226_240,
    "gpt3-350m": 355_871_744,
    "gpt3-760m": 760_300_032,
    "gpt3-1.3b": 1_315_723_264,
    "gpt3-2.7b": 2_651_553_280,
    "gpt3-6.7b": 6_658_404_352,
    "gpt3-13b": 12_853_386_240,
    "gpt3-175b": 174_604_259_328,
    "palm-540b": 540_356_474_880,
}
"""Exact sizes of models without public weights: PaLM 540B as published, GPT-3 as its Table 2.1 and Appendix D round."""
