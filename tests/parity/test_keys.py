"""Every key of every family's configuration, perturbed one at a time: followed, refused by name, or harmless."""

from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

import pytest
import transformers

from orrery.errors import ModelFileError
from orrery.exchange.reading.architecture import published
from orrery.families import load_family
from tests.parity.keys import FOLLOWED, REFUSED, Findings, read_reference, sparse, try_keys, written
from tests.parity.oracle import REFERENCED

HARMLESS = {
    "transformers_version": "says which program wrote the file",
    "_name_or_path": "says where the file came from",
    "return_dict": "chooses the form of an answer, not its numbers",
    "output_*": "chooses what is handed back beside the answer",
    "dtype": "repeats the dtype of the weights, which are read as they are",
    "chunk_size_feed_forward": "runs the feed-forward network piece by piece over the row; every token is alone in it",
    "is_encoder_decoder": "repeats what the family is",
    "id2label": "counts and names the labels of heads that have some",
    "label2id": "names the labels, whose order id2label gives",
    "num_labels": "counts the labels of heads that have some",
    "problem_type": "chooses a loss",
    "*dropout*": "training: nothing is dropped when a model is used",
    "*_pdrop": "training: nothing is dropped when a model is used",
    "*_drop": "training: nothing is dropped when a model is used",
    "*layerdrop": "training: no layer is dropped when a model is used",
    "router_jitter_noise": "training: no noise is added when a model is used",
    "init*": "how weights are drawn before training; a file has them",
    "use_cache": "speed",
    "*_token_id": "generation begins and ends with it; the forward pass of most families does not read it",
    "cls_token_id": "the tokenizer writes it",
    "router_aux_loss_coef": "the weight of a loss",
    "*aux_loss*": "the weight of a loss",
    "pretraining_tp": "on how many machines the model was trained",
    "reorder_and_upcast_attn": "the order of the same products, for half precision",
    "deterministic_flash_attn": "which kernel computes the gradient",
    "sparse_pred*": "computes the masked language model's loss at fewer places",
    "summary_*": "a head that no architecture of Orrery's has",
    "max_position_embeddings": "the longest row; positions that turn or fall with the distance have no table",
    "n_positions": "the longest row; rotary positions have no table, relative ones no end",
    "seq_length": "the longest row; ALiBi has no table",
    "max_seq_len": "the longest row; ALiBi has no table",
    "pooler_*": "a head of bare models",
    "add_cross_attention": "a part of decoders; where it would count, true is refused or the reference fails",
    "encoder_stride": "a head that restores images, which Orrery has not",
    "init_device": "where weights are made before training",
    "norm_topk_prob": "DeepSeek-V2's reference reads past it; where another family has it, it is followed",
    "drop_path_rate": "training: no branch is left out when a model is used",
    "alibi_bias_max": "MPT's reference reads past it",
}
"""Patterns of keys that move no number, each with its reason; that they move none is measured too."""


SAME_NUMBERS = dict.fromkeys(
    ("use_mamba_kernels", "use_mambapy", "use_falcon_mambapy", "use_associative_scan"),
    "which program computes the same numbers",
)
DRAWN = dict.fromkeys(
    ("residual_in_fp32", "rescale_prenorm_residual", "time_step_min", "time_step_max", "time_step_init_scheme"),
    "how new weights are drawn, and the format of the stream in narrow formats",
)
"""Keys of Mamba and its kin that move no number."""
LISTED = "layer_types names every layer; another number alone is illegal"
PAIRED = "channels turn two by two, and the parts of a head make it: no number beside the given one is legal alone"
ONE_WIDTH = "the heads make the width; another number alone is illegal"
FURTHER = "modules that predict further tokens: no logits pass through them"
FIRST = "the rotary settings that are written beside it count first"
GROUPS = "experts are in one group: another number alone is illegal"
MADE = "the reference makes it of other keys"
OF_MAMBA2 = {
    **dict.fromkeys(("hidden_size", "mamba_n_heads", "mamba_d_head", "mamba_expand"), ONE_WIDTH),
    "mamba_chunk_size": "how many tokens a piece of the same recurrence has",
    "num_logits_to_keep": "how many logits are handed back",
}
IDLE = defaultdict(
    dict,
    zamba2={
        **dict.fromkeys(("num_hidden_layers", "layer_types"), "layers_block_type beside it names every layer"),
        **dict.fromkeys(
            ("attention_hidden_size", "attention_head_dim", "head_dim", "mamba_headdim", "kv_channels"), MADE
        ),
        **dict.fromkeys(("num_query_groups", "use_conv_bias", "use_mem_eff_path"), "the reference reads past it"),
        **SAME_NUMBERS,
        "time_step_max": "how new weights are drawn",
        "chunk_size": "how many tokens a piece of the same recurrence has",
        "num_key_value_heads": "the adapters are made for as many as there are heads: another number alone is illegal",
        "num_logits_to_keep": "how many logits are handed back",
        "use_long_context": "says how long a text may be",
    },
    apertus={"head_dim": PAIRED},
    bamba={
        **OF_MAMBA2,
        "z_loss_coefficient": "the weight of a loss",
        "layer_types": "attn_layer_indices names the layers that attend; the reference computes this key",
    },
    codegen={
        "n_ctx": "the reference reads past it",
        **dict.fromkeys(("n_head", "num_attention_heads", "rotary_dim"), PAIRED),
    },
    cohere2={"num_hidden_layers": LISTED},
    ernie4_5_moe={"head_dim": PAIRED, "moe_layer_end_index": "-1 is the last layer, which is behind all others"},
    exaone4={"head_dim": PAIRED, "num_attention_heads": PAIRED},
    glm4_moe={
        "topk_group": GROUPS,
        "partial_rotary_factor": FIRST,
        **dict.fromkeys(("num_nextn_predict_layers", "num_mtp_layers"), FURTHER),
    },
    falcon_h1={
        **OF_MAMBA2,
        "mamba_d_ssm": ONE_WIDTH,
        "mamba_norm_before_gate": "nothing is normalised there unless mamba_rms_norm says so",
    },
    gpt_bigcode={
        **dict.fromkeys(
            ("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"), "the format of the same products"
        ),
        "num_key_value_heads": "repeats what multi_query says",
    },
    granitemoe={"head_dim": PAIRED},
    granitemoehybrid={**OF_MAMBA2, "num_hidden_layers": LISTED},
    helium=dict.fromkeys(("hidden_size", "num_attention_heads", "head_dim"), ONE_WIDTH),
    lfm2={
        "num_hidden_layers": LISTED,
        "full_attn_idxs": "layer_types, which is written beside it, says which layers attend",
        "head_dim": PAIRED,
    },
    mellum={
        "num_hidden_layers": LISTED,
        **dict.fromkeys(
            ("num_nextn_predict_layers", "num_mtp_layers", "mtp_layer_types", "mtp_mlp_layer_types"), FURTHER
        ),
    },
    minimax_m2={"partial_rotary_factor": FIRST},
    nanochat={"head_dim": PAIRED},
    nemotron={"partial_rotary_factor": FIRST},
    nemotron_h={
        **OF_MAMBA2,
        **DRAWN,
        **SAME_NUMBERS,
        **dict.fromkeys(("num_nextn_predict_layers", "mtp_layers_block_type"), FURTHER),
        **dict.fromkeys(
            ("expand", "mamba_proj_bias", "n_shared_experts", "time_step_limit"), "the reference reads past it"
        ),
        "chunk_size": "how many tokens a piece of the same recurrence has",
        "time_step_floor": "how new weights are drawn",
        "mamba_ssm_cache_dtype": "the format of states in a cache",
        "moe_shared_expert_overlap": "the order in which a GPU computes",
        "topk_group": GROUPS,
    },
    olmo3={"num_hidden_layers": LISTED, "head_dim": "repeats what the heads make of the width, which the norms need"},
    phimoe={"head_dim": PAIRED, "input_jitter_noise": "training: no noise is added when a model is used"},
    qwen3_next={
        "num_hidden_layers": LISTED,
        "full_attention_interval": "layer_types, which is written beside it, says which layers attend",
        "partial_rotary_factor": FIRST,
    },
    recurrent_gemma={
        **dict.fromkeys(("w_init_variance_scale", "final_w_init_variance_scale"), "how new weights are drawn"),
        "layer_types": "the reference derives it from block_types and cannot be given it",
    },
    solar_open={"topk_group": GROUPS, "partial_rotary_factor": FIRST},
    umt5={"relative_attention_max_distance": "no row of the test is as long"},
    youtu={
        "num_key_value_heads": "latent attention has a key and a value for every head",
        "embedding_initializer_range": "how weights are drawn before training; a file has them",
    },
    deberta_v2={"attention_head_size": "repeats what the heads make of the width; neither side runs another"},
    deepseek_v2={
        "num_key_value_heads": "latent attention has a key and a value for every head",
        "norm_topk_prob": "transformers reads past it, and the published models have it false",
    },
    distilbert={"sinusoidal_pos_embds": "how the table of positions begins; a file has it"},
    gemma3_text={
        "num_hidden_layers": "layer_types names every layer; another number alone is illegal",
        "_sliding_window_pattern": "layer_types, which is written beside it, says which layers have a window",
    },
    dinov2={
        "layerscale_value": "how the factors begin; a file has them",
        **dict.fromkeys(
            ("out_features", "out_indices", "stage_names", "apply_layernorm", "reshape_hidden_states"),
            "what the reference's backbone hands to other models",
        ),
    },
    blip={
        "architectures": "the parts are configurations of their own, without a class",
        "encoder_hidden_size": "the reference takes the width of the side that sees",
        "is_decoder": "a part that does not write has no cross-attention, and the reference fails",
        "tie_word_embeddings": "tied where the whole file or its part says so: one of them alone changes nothing",
        "label_smoothing": "which loss",
        "initializer_factor": "how weights are drawn before training; a file has them",
        "eos_token_id": "where a caption ends: the separator's, as the reference writes",
        "sep_token_id": "where a caption ends",
        "bos_token_id": "with which a caption begins: given with the words here",
        **dict.fromkeys(
            ("projection_dim", "image_text_hidden_size", "logit_scale_init_value"),
            "of the classes that compare pictures and texts",
        ),
    },
    clip={"logit_scale_init_value": "how the scale begins; a file has it"},
    siglip={
        **dict.fromkeys(
            ("projection_size", "hidden_size", "text_config", "vision_config"),
            "the vectors of both sides have one width: another of one side alone is illegal",
        ),
        "vision_use_head": "without it the reference has nothing to compare",
    },
    segformer={
        "layer_norm_eps": "the reference reads past it: its norms have torch's own",
        "semantic_loss_ignore_index": "which points a loss leaves out",
    },
    vit_mae={"norm_pix_loss": "what the loss compares the pixels with: followed there"},
    yolos=dict.fromkeys(
        (
            "auxiliary_loss",
            "class_cost",
            "bbox_cost",
            "giou_cost",
            "bbox_loss_coefficient",
            "giou_loss_coefficient",
            "eos_coefficient",
        ),
        "the matching and the weights of a loss",
    ),
    vision_encoder_decoder={
        "architectures": "the parts are configurations of their own, without a class",
        "cross_attention_hidden_size": "the width of the encoder: another is illegal",
    },
    gpt_neo=dict.fromkeys(
        ("num_layers", "num_hidden_layers"), "attention_types names every layer; another number alone is illegal"
    ),
    mamba2={
        **DRAWN,
        **SAME_NUMBERS,
        **dict.fromkeys(
            ("num_heads", "head_dim", "hidden_size", "expand"),
            "the heads make the width; another number alone is illegal",
        ),
        "time_step_rank": "the reference reads past it",
        "chunk_size": "how many tokens a piece of the same recurrence has",
    },
    olmoe={"head_dim": "repeats what the heads make of the width: the norm of the queries takes no other"},
    jamba=SAME_NUMBERS,
    **{family: {**DRAWN, **SAME_NUMBERS} for family in ("mamba", "falcon_mamba")},
    mpt={
        "learned_pos_emb": "the reference has no learned positions beside ALiBi",
        "attn_config": "an empty object means the defaults, which the tiny configuration has",
        "architectures": "the part for the attention is a configuration of its own, without a class",
        "attn_impl": "which kernel computes the same products",
        "alibi_bias_max": "the reference reads past it; another than 8 is what it would change",
        "embedding_fraction": "the share of gradients in the embedding: training",
        "norm_type": "the reference has one norm, which computes in float32",
    },
    qwen3_moe={"max_window_layers": "transformers gives every layer the window, whatever it says"},
    deepseek_v3={
        "num_key_value_heads": "latent attention has a key and a value for every head",
        "num_nextn_predict_layers": "modules that predict further tokens: no logits pass through them",
        "num_mtp_layers": "modules that predict further tokens: no logits pass through them",
    },
)
"""Keys that move no number in one family, each with its reason."""

HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "Model")
OF_HEADS = ("*classif*", "*label*", "pooler*", "cls_*", "summary*", "*dropout*", "problem_type", "*bias*")
"""What the answers of the other heads of an encoder may depend on."""

TURNED = {
    "default": {"rope_theta": 500.0},
    "linear": {"factor": 2.0},
    "dynamic": {"factor": 2.0, "original_max_position_embeddings": 6},
    "yarn": {
        "factor": 2.0, "original_max_position_embeddings": 24, "beta_fast": 4.0, "beta_slow": 1.0, "truncate": False,
        "attention_factor": None, "mscale": 0.7, "mscale_all_dim": 0.4,
    },
    "llama3": {
        "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
    },
}  # fmt: skip
"""The rotary settings whose every key is perturbed too."""

WINDOWS = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}
WRITES = {"is_decoder": True, "add_cross_attention": True}
TROCR = {
    **WRITES, "model_type": "trocr", "vocab_size": 61, "d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4,
    "decoder_ffn_dim": 40, "max_position_embeddings": 48, "cross_attention_hidden_size": 24,
}  # fmt: skip
MORE = {
    "bloom": [{"pretraining_tp": 2}],
    "cohere": [{"head_dim": 10}],
    "deberta": [{"relative_attention": False}, {"position_biased_input": True}],
    "deberta_v2": [{"relative_attention": False}, {"position_buckets": -1, "share_att_key": False}],
    "deepseek_v3": [{"n_group": 1, "topk_group": 1}],
    "deepseek_v2": [{"topk_method": "greedy", "q_lora_rank": None}, {"topk_group": 1}],
    "falcon": [
        {"new_decoder_architecture": False},
        {"new_decoder_architecture": False, "parallel_attn": False, "multi_query": False, "num_kv_heads": 6},
        {"new_decoder_architecture": False, "alibi": True, "bias": True},
        {"num_ln_in_parallel_attn": 1},
    ],
    "falcon_h1": [{"mamba_rms_norm": True}],
    "gpt_neox": [{"use_parallel_residual": False}],
    "jamba": [{"attn_layer_offset": 0}],
    "marian": [{"share_encoder_decoder_embeddings": True}],
    "mistral": [{"sliding_window": 4}],
    "mixtral": [{"sliding_window": 4}, {"head_dim": 10}],
    "mt5": [{"feed_forward_proj": "relu"}],
    "opt": [{"do_layer_norm_before": False}],
    "phi": [{"qk_layernorm": True}],
    "phi3": [{"sliding_window": 4}],
    "qwen2": [WINDOWS],
    "qwen2_moe": [WINDOWS],
    "qwen3": [WINDOWS],
    "qwen3_moe": [WINDOWS],
    "smollm3": [{"use_sliding_window": True, "sliding_window": 4}],
    "stablelm": [{"qk_layernorm": True, "use_parallel_residual": True}],
    "t5": [{"feed_forward_proj": "gated-gelu"}],
    "vision_encoder_decoder": [
        {"encoder": {**load_family("deit").TINY, "model_type": "deit"}, "decoder": TROCR},
        {"decoder": {**WRITES, **load_family("bert").TINY, "model_type": "bert"}},
    ],
    "rwkv": [{"use_cache": False}],  # with one the reference knows no other attention_hidden_size
}
"""Settings in which more of a family's keys matter."""


DIFFERS = {
    ("falcon", "output_attentions"): "transformers then takes its eager kernel, which adds ALiBi twice",
}
"""Keys that Orrery does not follow, each with what the reference does by mistake."""


def judged(family, bases, *, wide, only=("*",)):
    """Return what became of every key in some of a family's situations."""
    findings = Findings()
    for base in bases:
        try_keys(family, base, findings, wide=wide, only=only)
    return findings


def wrong(family, findings):
    """Return what differs from the reference, but for its own mistakes."""
    mistakes = tuple(f"{key} = " for name, key in DIFFERS if name == family)
    return [line for line in findings.wrong if not line.startswith(mistakes or ("\n",))]


def of_heads(family):
    """Return the configurations of an encoder's other heads."""
    stem = load_family(family).ARCHITECTURE.removesuffix("ForMaskedLM")
    named = [stem + head for head in HEADS if hasattr(transformers, stem + head)]
    encoder = load_family(family).ARCHITECTURE.endswith("ForMaskedLM")
    return [written(family, architectures=[name]) for name in named] if encoder else []


def turned(family, kind):
    """Return a configuration with rotary settings of a kind, as the family nests them."""
    settings = {"rope_type": kind, **TURNED[kind]}
    base = written(family)
    given = base["rope_parameters"]
    inside = {**settings, "truncate": True} if kind == "yarn" else settings  # the reference reads it outside alone
    nested = {key: {**kept(value), **inside} for key, value in given.items() if isinstance(value, dict)}
    return {**base, "rope_parameters": nested or {**kept(given), **settings}}


def kept(given):
    """Return what every kind of rotary settings has."""
    return {key: given[key] for key in ("rope_theta", "partial_rotary_factor") if key in given}


def unexplained(family, findings):
    """Return the keys that nothing ever moved, and that are on no list; rotary settings have a test of their own."""
    outcomes = {key: outcome for key, outcome in findings.outcomes.items() if not key[0].startswith("rope")}
    idle = [key for key, outcome in outcomes.items() if not outcome & {FOLLOWED, REFUSED}]
    return [
        ".".join(key) for key in idle if not any(fnmatch(key[-1], p) for p in HARMLESS) and key[-1] not in IDLE[family]
    ]


TINY_PHI3 = load_family("phi3").TINY
NAMED = {("nanochat", "yarn")}
"""Scalings that a family refuses by name: the norm behind the rotation would take their factor away again."""
TURNING = sorted(name for name in REFERENCED if "rope_parameters" in load_family(name).DEFAULTS)


@pytest.mark.parametrize("family", ["bert", "bloom", "deepseek_v3", "gpt2", "llama", "t5", "vision_encoder_decoder"])
def test_every_key_is_followed_refused_or_harmless(family):
    """Of a few families of every build; the long tier tries all of them, in every situation."""
    findings = judged(family, [written(family)], wide=False)
    assert not wrong(family, findings), "\n".join(wrong(family, findings))


@pytest.mark.long
@pytest.mark.parametrize("family", sorted(REFERENCED))
def test_every_key_in_every_situation(family):
    findings = judged(family, [written(family)], wide=True)
    for base in [
        sparse(family),
        *(make(family, **more) for more in MORE.get(family, []) for make in (written, sparse)),
    ]:
        try_keys(family, base, findings, wide=False)
    for base in of_heads(family):
        try_keys(family, base, findings, wide=True, only=OF_HEADS)
    assert not wrong(family, findings), "\n".join(wrong(family, findings))
    assert not unexplained(family, findings), "nothing moves these keys, and no reason is given"


@pytest.mark.slow
@pytest.mark.parametrize("family", TURNING)
def test_every_rotary_setting(family):
    findings = Findings()
    for kind in TURNED:
        base = turned(family, kind)
        try:
            read_reference(base)
        except Exception:  # the reference has no such scaling for this family
            continue
        if (family, kind) in NAMED:
            with pytest.raises(ModelFileError, match="rope_type"):
                published(dict(base), Path("config.json"))
            continue
        try_keys(family, base, findings, wide=False, only=("rope_parameters.*", "max_position_embeddings"))
    assert not wrong(family, findings), "\n".join(wrong(family, findings))


@pytest.mark.slow
@pytest.mark.parametrize("trained", [6, 40], ids=["long", "short"])
def test_every_setting_of_longrope(trained):
    channels = TINY_PHI3["hidden_size"] // TINY_PHI3["num_attention_heads"]
    short, long = ([1 + scale * i for i in range(channels // 2)] for scale in (0.25, 1.5))
    settings = {"rope_type": "longrope", "short_factor": short, "long_factor": long, "factor": 3.0}
    base = written("phi3", rope_parameters=settings, original_max_position_embeddings=trained)
    findings = Findings()
    only = ("rope_parameters.*", "max_position_embeddings", "original_max_position_embeddings")
    try_keys("phi3", base, findings, wide=True, only=only)
    assert not wrong("phi3", findings), "\n".join(wrong("phi3", findings))
    moved = FOLLOWED in findings.outcomes[("rope_parameters", "long_factor" if trained == 6 else "short_factor")]
    assert moved
