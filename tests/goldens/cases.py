"""The models whose golden outputs are shipped: of every family as many as it takes to show what is special in it."""

from typing import Any

VOCABULARY = 61
USUAL = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
SMALL = {
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 48,
}
WIDER = {**SMALL, "hidden_size": 32}
SHAPED = {key: value for key, value in SMALL.items() if key != "intermediate_size"}
GROUPED = {**SMALL, "num_key_value_heads": 2}
THETA = {"rope_theta": 500.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024, "rope_theta": 500.0}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 10_000.0,
}
FACTORS = {"short_factor": [1.0, 1.5, 2.0], "long_factor": [1.0, 4.0, 9.0]}
EXPERTS = {"num_experts_per_tok": 3, "num_experts": 8, "moe_intermediate_size": 12}
SLIDING = {"use_sliding_window": True, "sliding_window": 5}
STATE = {"hidden_size": 24, "state_size": 5, "num_hidden_layers": 2}
GPT = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 48}
GEMMA = {**GROUPED, "head_dim": 8}
LATENT = {
    **SMALL,
    "num_key_value_heads": 4,
    "moe_intermediate_size": 12,
    "q_lora_rank": 10,
    "kv_lora_rank": 8,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 5,
    "first_k_dense_replace": 1,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "routed_scaling_factor": 1.7,
    "n_group": 4,
    "topk_group": 2,
}
BART = {
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 28,
    "max_position_embeddings": 24,
    "decoder_start_token_id": 5,
}
T5 = {
    "d_model": 24,
    "d_kv": 5,
    "d_ff": 20,
    "num_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
}
BERT = {**SMALL, "type_vocab_size": 2}
ROBERTA = {**SMALL, "type_vocab_size": 2, "pad_token_id": 1}
DISTIL = {"dim": 24, "hidden_dim": 20, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 48}
DEBERTA = {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
MODERN = {**SMALL, "num_hidden_layers": 4, "local_attention": 6}
VIT = {**SMALL, "image_size": 12, "patch_size": 4}
del VIT["max_position_embeddings"]

YOLOS = {**VIT, "image_size": [12, 16], "num_detection_tokens": 5}
SEGFORMER = {
    "num_encoder_blocks": 2, "depths": [2, 1], "sr_ratios": [2, 1], "hidden_sizes": [8, 16], "patch_sizes": [7, 3],
    "strides": [4, 2], "num_attention_heads": [2, 4], "mlp_ratios": [2, 2], "decoder_hidden_size": 12, "image_size": 32,
}  # fmt: skip
DINO = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "mlp_ratio": 2, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip
MAE = {
    **VIT, "decoder_hidden_size": 16, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 2,
    "decoder_intermediate_size": 20, "mask_ratio": 0.0,
}  # fmt: skip
CLIP = {
    "text_config": {
        "vocab_size": VOCABULARY, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 20, "max_position_embeddings": 48, "eos_token_id": 60, "projection_dim": 10,
    },
    "vision_config": {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "image_size": 12,
        "patch_size": 4, "projection_dim": 10,
    },
    "projection_dim": 10,
}  # fmt: skip
BLIP = {
    "text_config": {
        "vocab_size": VOCABULARY, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 20, "max_position_embeddings": 48, "bos_token_id": 5, "sep_token_id": 3,
    },
    "vision_config": {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "image_size": 12,
        "patch_size": 4,
    },
}  # fmt: skip
SIGLIP = {
    "text_config": {
        "vocab_size": VOCABULARY, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 20, "max_position_embeddings": 48, "projection_size": 16,
    },
    "vision_config": {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "image_size": 12,
        "patch_size": 4,
    },
}  # fmt: skip
IMAGES = ("vit", "deit", "dinov2", "yolos", "segformer", "vit_mae", "clip_vision_model", "siglip_vision_model")
"""Families that read images and write nothing: of the usual settings none is theirs."""

Cases = dict[str, list[tuple[str, dict[str, Any]]]]
PLAIN: Cases = {
    "bloom": [
        ("8 heads", {"hidden_size": 24, "n_layer": 2, "n_head": 8}),
        (
            "6 heads, another epsilon, an untied head",
            {
                "hidden_size": 24,
                "n_layer": 2,
                "n_head": 6,
                "layer_norm_epsilon": 0.1,
                "tie_word_embeddings": False,
            },
        ),
    ],
    "cohere": [
        ("norms of heads, scaled logits", {**GROUPED, "use_qk_norm": True, "logit_scale": 0.4}),
        ("biases, defaults", {**SMALL, "attention_bias": True, "tie_word_embeddings": False}),
    ],
    "deepseek_v2": [
        (
            "yarn with both factors, groups",
            {
                **LATENT,
                "topk_method": "group_limited_greedy",
                "rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3},
            },
        ),
        ("greedy, shared experts", {**LATENT, "n_shared_experts": 2, "q_lora_rank": None, "attention_bias": True}),
    ],
    "deepseek_v3": [
        ("yarn with both factors", {**LATENT, "rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3}}),
        (
            "halves, weights as they are, shared experts",
            {
                **LATENT,
                "rope_interleave": False,
                "norm_topk_prob": False,
                "n_shared_experts": 2,
                "attention_bias": True,
            },
        ),
    ],
    "falcon": [
        ("one key-value head, parallel", {**SHAPED}),
        ("two norms, grouped", {**SHAPED, "new_decoder_architecture": True, "num_kv_heads": 2, "ffn_hidden_size": 20}),
        ("sequential, biases", {**SHAPED, "parallel_attn": False, "multi_query": False, "bias": True}),
        ("alibi", {**SHAPED, "alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}),
    ],
    "falcon_mamba": [
        ("norms of what selects", {**STATE, "time_step_rank": 3}),
        (
            "another width, epsilons",
            {**STATE, "intermediate_size": 40, "mixer_rms_eps": 0.1, "layer_norm_epsilon": 0.1},
        ),
    ],
    "gemma": [
        ("grouped, wide heads", {**GROUPED, "head_dim": 10}),
        ("biases, exact gelu", {**GEMMA, "hidden_act": "gelu", "attention_bias": True}),
    ],
    "gemma2": [
        (
            "windows, both caps",
            {
                **GEMMA,
                "sliding_window": 5,
                "query_pre_attn_scalar": 20,
                "attn_logit_softcapping": 0.7,
                "final_logit_softcapping": 2.0,
            },
        ),
        ("no caps", {**GEMMA, "sliding_window": 5, "attn_logit_softcapping": None, "final_logit_softcapping": None}),
    ],
    "gemma3_text": [
        (
            "windows, two rotations",
            {
                **GEMMA,
                "sliding_window": 5,
                "query_pre_attn_scalar": 20,
                "layer_types": ["full_attention", "sliding_attention"],
                "rope_parameters": {
                    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 500.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
                },
            },
        ),
        ("defaults, capped logits", {**GEMMA, "final_logit_softcapping": 2.0, "sliding_window_pattern": 2}),
    ],
    "glm4": [
        ("partial rotation, sandwich", {**GEMMA}),
        ("whole rotation, no biases", {**GEMMA, "attention_bias": False, "partial_rotary_factor": 1.0}),
    ],
    "gpt2": [
        ("biases", {**GPT}),
        (
            "unscaled, relu, an untied head",
            {
                **GPT,
                "scale_attn_weights": False,
                "activation_function": "relu",
                "n_inner": 20,
                "tie_word_embeddings": False,
            },
        ),
    ],
    "gpt_neo": [
        (
            "global and local",
            {
                "hidden_size": 24,
                "num_layers": 2,
                "num_heads": 4,
                "attention_types": [[["global", "local"], 1]],
                "max_position_embeddings": 48,
                "window_size": 5,
            },
        ),
        (
            "a window of one",
            {
                "hidden_size": 24,
                "num_layers": 2,
                "num_heads": 4,
                "attention_types": [[["local"], 2]],
                "max_position_embeddings": 48,
                "window_size": 1,
                "intermediate_size": 20,
            },
        ),
    ],
    "gpt_neox": [
        ("parallel, partial rotation", {**WIDER, "rotary_pct": 0.5}),
        (
            "sequential, no biases",
            {**WIDER, "use_parallel_residual": False, "attention_bias": False, "hidden_act": "gelu_new"},
        ),
    ],
    "gpt_oss": [
        (
            "sinks, windows, clamped experts, yarn",
            {
                **GEMMA,
                "num_local_experts": 5,
                "num_experts_per_tok": 2,
                "sliding_window": 5,
                "swiglu_limit": 0.8,
                "rope_parameters": {**YARN, "truncate": False},
            },
        ),
        (
            "other clamps",
            {
                **GEMMA,
                "num_local_experts": 5,
                "num_experts_per_tok": 3,
                "layer_types": ["full_attention"] * 2,
                "swiglu_alpha": 1.0,
                "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
            },
        ),
    ],
    "gptj": [
        ("partial rotation of pairs", {**GPT, "rotary_dim": 4}),
        ("whole rotation", {**GPT, "rotary_dim": 6, "n_inner": 20, "layer_norm_epsilon": 0.1}),
    ],
    "granite": [
        (
            "all four factors",
            {
                **GROUPED,
                "embedding_multiplier": 3.0,
                "residual_multiplier": 0.4,
                "attention_multiplier": 0.2,
                "logits_scaling": 2.5,
            },
        ),
        (
            "biases",
            {
                **GROUPED,
                "embedding_multiplier": 0.5,
                "residual_multiplier": 1.5,
                "attention_multiplier": 0.6,
                "logits_scaling": 0.7,
                "attention_bias": True,
                "mlp_bias": True,
            },
        ),
    ],
    "internlm3": [
        ("biases of q, k and v", {**GEMMA, **THETA, "qkv_bias": True}),
        (
            "the other biases, positions pressed together",
            {**GEMMA, "bias": True, "rope_parameters": {"rope_type": "linear", "factor": 2.5, "rope_theta": 500.0}},
        ),
    ],
    "llama": [
        ("grouped", {**GROUPED, **THETA}),
        (
            "llama 3.1's rotation, biases",
            {
                **GROUPED,
                "head_dim": 16,
                "rope_parameters": LLAMA3,
                "attention_bias": True,
                "mlp_bias": True,
            },
        ),
        (
            "yarn with its own temperature",
            {
                **GROUPED,
                "head_dim": 16,
                "tie_word_embeddings": True,
                "rope_parameters": {**YARN, "attention_factor": 0.7, "beta_fast": 24, "beta_slow": 2},
            },
        ),
        (
            "linear, an epsilon of 0.1",
            {
                **SMALL,
                "rms_norm_eps": 0.1,
                "hidden_act": "gelu",
                "rope_parameters": {"rope_type": "linear", "factor": 2.5, **THETA},
            },
        ),
    ],
    "mamba": [
        ("tied", {**STATE, "time_step_rank": 3}),
        (
            "wider, biases, an untied head",
            {**STATE, "expand": 3, "conv_kernel": 3, "use_bias": True, "tie_word_embeddings": False},
        ),
        ("no bias of the convolution, gelu", {**STATE, "use_conv_bias": False, "hidden_act": "gelu"}),
    ],
    "mamba2": [
        ("groups", {**STATE, "num_heads": 6, "head_dim": 8, "n_groups": 2}),
        (
            "one group, biases, a tied head",
            {**STATE, "num_heads": 4, "head_dim": 12, "n_groups": 1, "use_bias": True, "tie_word_embeddings": True},
        ),
        ("bounded steps", {**STATE, "num_heads": 3, "head_dim": 16, "n_groups": 3, "time_step_limit": [0.6, 0.9]}),
    ],
    "mistral": [
        ("a window", {**GROUPED, "sliding_window": 5}),
        ("a window of one, wide heads", {**GROUPED, "sliding_window": 1, "head_dim": 10, "tie_word_embeddings": True}),
    ],
    "mixtral": [
        ("experts", {**GROUPED, "num_local_experts": 6, "num_experts_per_tok": 3}),
        ("a window", {**GROUPED, "num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": 5}),
    ],
    "mpt": [
        ("alibi", {"d_model": 24, "n_layers": 2, "n_heads": 4, "max_seq_len": 48}),
        (
            "6 heads, a scale",
            {
                "d_model": 24,
                "n_layers": 2,
                "n_heads": 6,
                "max_seq_len": 48,
                "attn_config": {"softmax_scale": 0.2},
            },
        ),
    ],
    "olmo": [
        ("clipped", {**GROUPED, "clip_qkv": 0.3}),
        ("biases", {**SMALL, "attention_bias": True, "tie_word_embeddings": True}),
    ],
    "olmo2": [
        ("norms behind", {**GROUPED, **THETA}),
        ("biases", {**GROUPED, "attention_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 0.1}),
    ],
    "olmoe": [
        ("weights as they are", {**GROUPED, "num_experts": 8, "num_experts_per_tok": 3}),
        ("weights that sum to one", {**GROUPED, "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True}),
    ],
    "openai_gpt": [
        ("norms behind", {**GPT}),
        ("relu", {**GPT, "afn": "relu", "layer_norm_epsilon": 0.1}),
    ],
    "opt": [
        ("norms in front", {**SHAPED, "ffn_dim": 20}),
        (
            "norms behind, narrow words",
            {**SHAPED, "ffn_dim": 20, "do_layer_norm_before": False, "word_embed_proj_dim": 16},
        ),
    ],
    "phi": [
        ("parallel, partial rotation", {**WIDER}),
        (
            "norms of heads, grouped",
            {
                **WIDER,
                "num_key_value_heads": 2,
                "qk_layernorm": True,
                "partial_rotary_factor": 0.25,
                "layer_norm_eps": 0.1,
            },
        ),
    ],
    "phi3": [
        ("a window, grouped", {**GROUPED, "sliding_window": 5}),
        ("partial rotation", {**GROUPED, "partial_rotary_factor": 0.67, "tie_word_embeddings": True}),
        (
            "short factors",
            {
                **GROUPED,
                "original_max_position_embeddings": 20,
                "rope_parameters": {"rope_type": "longrope", "rope_theta": 500.0, **FACTORS},
            },
        ),
        (
            "long factors",
            {
                **GROUPED,
                "original_max_position_embeddings": 2,
                "rope_parameters": {"rope_type": "longrope", "rope_theta": 500.0, **FACTORS},
            },
        ),
    ],
    "qwen2": [
        ("biases", {**GROUPED}),
        ("windows above", {**GROUPED, **SLIDING, "max_window_layers": 1, "tie_word_embeddings": True}),
    ],
    "qwen2_moe": [
        ("a shared expert, weights as they are", {**GROUPED, **EXPERTS, "shared_expert_intermediate_size": 16}),
        (
            "weights that sum to one, every second layer, windows",
            {
                **GROUPED,
                **EXPERTS,
                "shared_expert_intermediate_size": 16,
                "norm_topk_prob": True,
                "decoder_sparse_step": 2,
                **SLIDING,
                "layer_types": ["full_attention", "sliding_attention"],
            },
        ),
    ],
    "qwen3": [
        ("norms of heads", {**GEMMA, **THETA}),
        ("windows, biases", {**GEMMA, **SLIDING, "max_window_layers": 0, "attention_bias": True}),
    ],
    "qwen3_moe": [
        ("weights as they are", {**GEMMA, **EXPERTS}),
        (
            "weights that sum to one, dense layers",
            {
                **GEMMA,
                **EXPERTS,
                "norm_topk_prob": True,
                "mlp_only_layers": [0],
                "attention_bias": True,
            },
        ),
    ],
    "jamba": [
        (
            "states, keys and experts",
            {
                **GROUPED,
                "num_experts": 3,
                "attn_layer_period": 2,
                "attn_layer_offset": 1,
                "expert_layer_offset": 0,
                "mamba_d_state": 4,
                "mamba_dt_rank": 3,
            },
        ),
    ],
    "rwkv": [
        (
            "usual",
            {
                "hidden_size": 24,
                "attention_hidden_size": 20,
                "intermediate_size": 28,
                "num_hidden_layers": 2,
                "context_length": 48,
                "use_cache": False,
            },
        ),
    ],
    "smollm3": [
        ("layers without positions", {**GROUPED, "no_rope_layers": [0, 1]}),
        (
            "windows, biases",
            {
                **GROUPED,
                "no_rope_layer_interval": 2,
                "sliding_window": 5,
                "attention_bias": True,
                "mlp_bias": True,
                "layer_types": ["sliding_attention", "full_attention"],
            },
        ),
    ],
    "stablelm": [
        ("partial rotation", {**WIDER, "num_key_value_heads": 4, "use_qkv_bias": True}),
        (
            "parallel, norms of heads, grouped",
            {**WIDER, "num_key_value_heads": 2, "use_parallel_residual": True, "qk_layernorm": True},
        ),
    ],
    "starcoder2": [
        ("a window, biases", {**GROUPED, "sliding_window": 5}),
        ("no biases", {**GROUPED, "use_bias": False, "tie_word_embeddings": False, "norm_epsilon": 0.1}),
    ],
    "bart": [
        ("biases", {**BART}),
        ("scaled words, relu", {**BART, "scale_embedding": True, "activation_function": "relu"}),
    ],
    "mbart": [
        ("final norms", {**BART}),
        ("scaled words", {**BART, "scale_embedding": True}),
    ],
    "pegasus": [
        ("sinusoids", {**BART}),
        ("scaled words", {**BART, "scale_embedding": True, "activation_function": "gelu"}),
    ],
    "marian": [
        ("sinusoids, one vocabulary", {**BART, "scale_embedding": True, "activation_function": "swish"}),
        ("defaults", {**BART}),
    ],
    "t5": [
        ("relu, scaled head", {**T5}),
        (
            "gated, another head",
            {
                **T5,
                "feed_forward_proj": "gated-gelu",
                "tie_word_embeddings": False,
                "scale_decoder_outputs": False,
            },
        ),
        ("the usual buckets", {**T5, "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128}),
    ],
    "mt5": [
        ("gated", {**T5, "feed_forward_proj": "gated-gelu"}),
        ("another epsilon", {**T5, "layer_norm_epsilon": 0.1}),
    ],
}
"""Families of one architecture: the one that their file names."""

LABELS = {"num_labels": 3}
HEADS: Cases = {
    "albert": [
        ("AlbertForMaskedLM", {**BERT, "embedding_size": 16, "num_hidden_layers": 3}),
        (
            "AlbertForPreTraining",
            {
                **BERT,
                "embedding_size": 16,
                "num_hidden_layers": 4,
                "num_hidden_groups": 2,
                "inner_group_num": 2,
            },
        ),
    ],
    "bert": [
        ("BertForMaskedLM", {**BERT}),
        ("BertForPreTraining", {**BERT, "hidden_act": "relu", "layer_norm_eps": 0.1}),
        ("BertForSequenceClassification", {**BERT, **LABELS}),
        ("BertModel", {**BERT}),
    ],
    "deberta": [
        ("DebertaForMaskedLM", {**DEBERTA}),
        (
            "DebertaForMaskedLM",
            {**DEBERTA, "position_biased_input": False, "pos_att_type": ["p2c"], "type_vocab_size": 2},
        ),
        (
            "DebertaForMaskedLM",
            {**DEBERTA, "max_relative_positions": 4, "pos_att_type": ["c2p"], "layer_norm_eps": 0.1},
        ),
        ("DebertaForTokenClassification", {**DEBERTA, **LABELS}),
    ],
    "deberta_v2": [
        ("DebertaV2ForMaskedLM", {**DEBERTA, "position_buckets": 4}),
        (
            "DebertaV2ForMaskedLM",
            {
                **DEBERTA,
                "position_buckets": 6,
                "max_relative_positions": 12,
                "norm_rel_ebd": "layer_norm",
                "share_att_key": True,
                "position_biased_input": False,
                "pos_att_type": ["p2c"],
            },
        ),
        ("DebertaV2ForMaskedLM", {**DEBERTA, "conv_kernel_size": 3, "conv_act": "gelu", "pos_att_type": ["c2p"]}),
        ("DebertaV2ForSequenceClassification", {**DEBERTA, **LABELS}),
    ],
    "distilbert": [
        ("DistilBertForMaskedLM", {**DISTIL}),
        ("DistilBertForSequenceClassification", {**DISTIL, **LABELS, "activation": "relu"}),
    ],
    "electra": [
        ("ElectraForMaskedLM", {**BERT, "embedding_size": 16}),
        ("ElectraForPreTraining", {**BERT, "embedding_size": 16}),
        ("ElectraForSequenceClassification", {**BERT, **LABELS}),
    ],
    "modernbert": [
        ("ModernBertForMaskedLM", {**MODERN, "global_rope_theta": 500.0, "local_rope_theta": 50.0}),
        (
            "ModernBertForSequenceClassification",
            {
                **MODERN,
                **LABELS,
                "classifier_pooling": "mean",
                "norm_bias": True,
                "attention_bias": True,
                "mlp_bias": True,
                "global_attn_every_n_layers": 2,
                "local_attention": 3,
            },
        ),
    ],
    "roberta": [
        ("RobertaForMaskedLM", {**ROBERTA}),
        ("RobertaForSequenceClassification", {**ROBERTA, **LABELS, "pad_token_id": 2}),
    ],
    "camembert": [("CamembertForMaskedLM", {**ROBERTA})],
    "mpnet": [
        ("MPNetForMaskedLM", {**SMALL}),
        ("MPNetForSequenceClassification", {**SMALL, **LABELS, "hidden_act": "relu"}),
    ],
    "xlm_roberta_xl": [("XLMRobertaXLForMaskedLM", {**ROBERTA})],
    "xlm_roberta": [
        ("XLMRobertaForMaskedLM", {**ROBERTA}),
        ("XLMRobertaForQuestionAnswering", {**ROBERTA, "hidden_act": "relu"}),
    ],
    "vit": [
        ("ViTForImageClassification", {**VIT, **LABELS}),
        ("ViTModel", {**VIT, "qkv_bias": False, "hidden_act": "relu", "layer_norm_eps": 0.1, "num_channels": 1}),
    ],
    "clip": [("CLIPModel", CLIP), ("CLIPForImageClassification", {**CLIP, **LABELS})],
    "clip_text_model": [
        ("CLIPTextModelWithProjection", CLIP["text_config"]),
        ("CLIPTextModel", {**CLIP["text_config"], "eos_token_id": 2}),
    ],
    "clip_vision_model": [
        ("CLIPVisionModelWithProjection", CLIP["vision_config"]),
        ("CLIPVisionModel", {**CLIP["vision_config"], "hidden_act": "gelu", "num_channels": 1}),
    ],
    "siglip": [("SiglipModel", SIGLIP), ("SiglipForImageClassification", {**SIGLIP, **LABELS})],
    "siglip_text_model": [
        ("SiglipTextModel", SIGLIP["text_config"]),
        ("SiglipTextModel", {**SIGLIP["text_config"], "projection_size": 10, "hidden_act": "relu"}),
    ],
    "siglip_vision_model": [
        ("SiglipVisionModel", SIGLIP["vision_config"]),
        ("SiglipVisionModel", {**SIGLIP["vision_config"], "hidden_act": "gelu", "num_channels": 1}),
    ],
    "vit_mae": [
        ("ViTMAEForPreTraining", MAE),
        ("ViTMAEForPreTraining", {**MAE, "qkv_bias": False, "hidden_act": "relu", "num_channels": 1}),
    ],
    "segformer": [
        ("SegformerForSemanticSegmentation", {**SEGFORMER, **LABELS}),
        ("SegformerForImageClassification", {**SEGFORMER, **LABELS, "hidden_act": "relu", "num_channels": 1}),
        ("SegformerModel", {**SEGFORMER, "patch_sizes": [4, 5], "strides": [3, 2]}),
    ],
    "yolos": [
        ("YolosForObjectDetection", {**YOLOS, **LABELS}),
        ("YolosForObjectDetection", {**YOLOS, "use_mid_position_embeddings": False, "qkv_bias": False}),
        ("YolosModel", {**YOLOS, "hidden_act": "relu", "layer_norm_eps": 0.1, "num_channels": 1}),
    ],
    "dinov2": [
        ("Dinov2ForImageClassification", {**DINO, **LABELS}),
        ("Dinov2ForImageClassification", {**DINO, **LABELS, "use_swiglu_ffn": True, "use_mask_token": False}),
        ("Dinov2Model", {**DINO, "hidden_act": "relu", "layer_norm_eps": 0.1, "qkv_bias": False, "num_channels": 1}),
    ],
    "deit": [
        ("DeiTForImageClassification", {**VIT, **LABELS}),
        ("DeiTForImageClassificationWithTeacher", {**VIT, **LABELS, "qkv_bias": False, "num_channels": 1}),
        ("DeiTModel", {**VIT, "hidden_act": "relu", "layer_norm_eps": 0.1}),
    ],
}
"""Families of several heads: by the architecture."""
