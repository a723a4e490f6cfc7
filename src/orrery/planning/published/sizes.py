"""Published models and how many parameters they have: what every family must count to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.models.model import ModelSpec


@dataclass(frozen=True)
class PublishedSize:
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

    def spec(self) -> ModelSpec:
        """Return its architecture."""
        return cast(ModelSpec, load_family(self.family).spec(self.config))


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
_GPT_NEO = {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]]}
_OPT_350M = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "ffn_dim": 4096,
    "num_attention_heads": 16,
    "word_embed_proj_dim": 512,
    "do_layer_norm_before": False,
}
_FALCON_40B = {
    "hidden_size": 8192,
    "num_hidden_layers": 60,
    "num_attention_heads": 128,
    "num_kv_heads": 8,
    "new_decoder_architecture": True,
}
_VIT = {"num_labels": 1000}
_VIT_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
_CAPTIONER = {
    "encoder": {"model_type": "vit"},
    "decoder": {"model_type": "gpt2", "is_decoder": True, "add_cross_attention": True},
    "decoder_start_token_id": 50_256,
}
_PHI_2 = {"hidden_size": 2560, "intermediate_size": 10_240, "num_hidden_layers": 32, "num_attention_heads": 32}
_COMMAND_R_PLUS = {**_llama(12_288, 33_792, 64, 96, 8, 256_000, True), "use_qk_norm": True}

# The reference table: recomputed from published configurations, equal to every count that is published.
SIZES: tuple[PublishedSize, ...] = (
    PublishedSize("GPT-2 small", "gpt2", _gpt2(768, 12, 12), 124_439_808),
    PublishedSize("GPT-2 medium", "gpt2", _gpt2(1024, 24, 16), 354_823_168),
    PublishedSize("GPT-2 large", "gpt2", _gpt2(1280, 36, 20), 774_030_080),
    PublishedSize("GPT-2 XL", "gpt2", _gpt2(1600, 48, 25), 1_557_611_200),
    PublishedSize("BERT base, uncased", "bert", _bert("BertModel", 768, 12, 30_522), 109_482_240),
    PublishedSize("BERT large, uncased", "bert", _bert("BertModel", 1024, 24, 30_522), 335_141_888),
    PublishedSize("BERT base, cased", "bert", _bert("BertModel", 768, 12, 28_996), 108_310_272),
    PublishedSize("BERT large, cased", "bert", _bert("BertModel", 1024, 24, 28_996), 333_579_264),
    PublishedSize("RoBERTa base", "roberta", _bert("RobertaModel", 768, 12, 50_265, **_ROBERTA), 124_645_632),
    PublishedSize("RoBERTa large", "roberta", _bert("RobertaModel", 1024, 24, 50_265, **_ROBERTA), 355_359_744),
    PublishedSize("T5 small", "t5", _t5(512, 2048, 6, 8, 64), 60_506_624),
    PublishedSize("T5 base", "t5", _t5(768, 3072, 12, 12, 64), 222_903_552),
    PublishedSize("T5 large", "t5", _t5(1024, 4096, 24, 16, 64), 737_668_096),
    PublishedSize("T5 3B", "t5", _t5(1024, 16_384, 24, 32, 128), 2_851_598_336),
    PublishedSize("T5 11B", "t5", _t5(1024, 65_536, 24, 128, 128), 11_307_321_344),
    PublishedSize("BART base", "bart", _bart(768, 6), 139_420_416, beside=50_265),
    PublishedSize("BART large", "bart", _bart(1024, 12), 406_291_456, beside=50_265),
    PublishedSize("Llama 7B", "llama", _llama(4096, 11_008, 32, 32, 32), 6_738_415_616),
    PublishedSize("Llama 13B", "llama", _llama(5120, 13_824, 40, 40, 40), 13_015_864_320),
    PublishedSize("Llama 33B", "llama", _llama(6656, 17_920, 60, 52, 52), 32_528_943_616),
    PublishedSize("Llama 65B", "llama", _llama(8192, 22_016, 80, 64, 64), 65_285_660_672),
    PublishedSize("Llama 2 70B", "llama", _llama(8192, 28_672, 80, 64, 8), 68_976_648_192),
    PublishedSize("Llama 3 8B", "llama", _llama(4096, 14_336, 32, 32, 8, 128_256), 8_030_261_248),
    PublishedSize("Llama 3 70B", "llama", _llama(8192, 28_672, 80, 64, 8, 128_256), 70_553_706_496),
    PublishedSize("Llama 3.1 405B", "llama", _llama(16_384, 53_248, 126, 128, 8, 128_256), 405_853_388_800),
    PublishedSize("Llama 3.2 1B", "llama", _llama(2048, 8192, 16, 32, 8, 128_256, True), 1_235_814_400),
    PublishedSize("Llama 3.2 3B", "llama", _llama(3072, 8192, 28, 24, 8, 128_256, True), 3_212_749_824),
    PublishedSize("Mistral 7B", "mistral", _llama(4096, 14_336, 32, 32, 8), 7_241_732_096),
    PublishedSize("Mixtral 8x7B", "mixtral", _MIXTRAL, 46_702_792_704),
    PublishedSize("BLOOM 560M", "bloom", _bloom(1024, 24, 16), 559_214_592),
    PublishedSize("BLOOM 7B1", "bloom", _bloom(4096, 30, 32), 7_069_016_064),
    PublishedSize("BLOOM 176B", "bloom", _bloom(14_336, 70, 112), 176_247_271_424),
    PublishedSize("DeepSeek-V3", "deepseek_v3", {}, 671_026_404_352, beside=14_848),
    # Table 3 of Vaswani et al. says 65 M and 213 M, whose vocabularies and biases it does not give.
    PublishedSize("Transformer base", "transformer", {}, 63_082_496),
    PublishedSize("Transformer big", "transformer", {"d_model": 1024, "d_ff": 4096, "num_heads": 16}, 214_245_376),
)

# What transformers' own model of the same configuration counts, built without its weights.
COUNTED: tuple[PublishedSize, ...] = (
    PublishedSize("GPT (2018)", "openai_gpt", {}, 116_534_784),
    PublishedSize("GPT-Neo 125M", "gpt_neo", _GPT_NEO, 125_198_592),
    PublishedSize("GPT-J 6B", "gptj", {}, 6_050_882_784),
    PublishedSize("GPT-NeoX 20B", "gpt_neox", {}, 20_554_567_680),
    PublishedSize("OPT 125M", "opt", {}, 125_239_296),
    PublishedSize("OPT 350M", "opt", _OPT_350M, 331_196_416),
    PublishedSize("Falcon 7B", "falcon", {}, 6_921_720_704),
    PublishedSize("Falcon 40B", "falcon", _FALCON_40B, 41_303_293_952),
    PublishedSize(
        "MPT 7B", "mpt", {"d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50_432}, 6_649_286_656
    ),
    PublishedSize("Phi-2", "phi", _PHI_2, 2_779_683_840),
    PublishedSize("Phi-3 mini", "phi3", {}, 3_821_079_552),
    PublishedSize("StableLM 3B", "stablelm", {}, 2_795_443_200),
    PublishedSize("StarCoder 2 3B", "starcoder2", {}, 3_030_371_328),
    PublishedSize("Mistral 7B v0.3", "mistral", _llama(4096, 14_336, 32, 32, 8, 32_768), 7_248_023_552),
    PublishedSize("Qwen 2.5 0.5B", "qwen2", _llama(896, 4864, 24, 14, 2, 151_936, True), 494_032_768),
    PublishedSize("Qwen 2.5 7B", "qwen2", _llama(3584, 18_944, 28, 28, 4, 152_064), 7_615_616_512),
    PublishedSize("Qwen 3 8B", "qwen3", {**_llama(4096, 12_288, 36, 32, 8, 151_936), "head_dim": 128}, 8_190_735_360),
    PublishedSize("Gemma 2B", "gemma", _llama(2048, 16_384, 18, 8, 1, 256_000, True), 2_506_172_416),
    PublishedSize("Gemma 2 2B", "gemma2", _llama(2304, 9216, 26, 8, 4, 256_000, True), 2_614_341_888),
    PublishedSize(
        "Gemma 3 1B", "gemma3_text", {**_llama(1152, 6912, 26, 4, 1, 262_144, True), "head_dim": 256}, 999_885_952
    ),
    PublishedSize("OLMo 7B", "olmo", _llama(4096, 11_008, 32, 32, 32, 50_304), 6_888_095_744),
    PublishedSize("OLMo 2 7B", "olmo2", _llama(4096, 11_008, 32, 32, 32, 100_352), 7_298_617_344),
    PublishedSize("Granite 3.3 8B", "granite", _llama(4096, 12_800, 40, 32, 8, 49_159, True), 8_170_864_640),
    PublishedSize("Command R", "cohere", _llama(8192, 22_528, 40, 64, 64, 256_000, True), 34_980_831_232),
    PublishedSize("Command R+", "cohere", _COMMAND_R_PLUS, 103_810_674_688),
    PublishedSize("SmolLM3 3B", "smollm3", _llama(2048, 11_008, 36, 16, 4, 128_256, True), 3_075_098_624),
    PublishedSize("GLM-4 9B", "glm4", _llama(4096, 13_696, 40, 32, 2, 151_552), 9_400_279_040),
    PublishedSize("DistilBERT", "distilbert", {"architectures": ["DistilBertModel"]}, 66_362_880),
    PublishedSize("ALBERT base", "albert", _bert("AlbertModel", 768, 12, 30_000), 11_683_584),
    PublishedSize("ELECTRA small", "electra", {"architectures": ["ElectraModel"]}, 13_483_008),
    PublishedSize("ModernBERT base", "modernbert", {}, 149_655_232),
    PublishedSize("XLM-R base", "xlm_roberta", _bert("XLMRobertaModel", 768, 12, 250_002, **_ROBERTA), 278_043_648),
    PublishedSize("ViT base", "vit", _VIT, 86_567_656),
    PublishedSize("ViT large", "vit", {**_VIT_LARGE, **_VIT}, 304_326_632),
    PublishedSize("Captioner: ViT base and GPT-2 small", "vision_encoder_decoder", _CAPTIONER, 239_195_904),
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


def key(name: str) -> str:
    """Return a name as one word of the command line: ``llama-3.1-405b`` for "Llama 3.1 405B"."""
    return "-".join("".join(c if c.isalnum() or c in ".+" else " " for c in name.lower()).split())


KEYS: Mapping[str, PublishedSize] = {key(size.name): size for size in (*SIZES, *COUNTED)}
"""Every published model by its key."""


def published(name: str) -> PublishedSize:
    """Return the published model of this name, or of its key.

    Raises:
        UsageError: there is none.
    """
    if key(name) not in KEYS:
        raise UsageError(f"no published size of {name!r}", f"there are: {', '.join(KEYS)}")
    return KEYS[key(name)]
