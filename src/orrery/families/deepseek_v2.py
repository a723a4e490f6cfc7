"""DeepSeek-V2 (DeepSeek-AI 2024): latent attention and many small experts.

Peculiar to it: keys and values grow out of a small latent, and the cache holds that latent and one rotated key for all
heads (section 2.1); queries come through a latent too, but for the Lite model; rotation pairs neighbouring channels;
the first blocks are dense, the others have routed experts, chosen among the best groups, beside shared ones (section
2.2). Weights of the chosen are scaled, never normalised: as in transformers, which reads past ``norm_topk_prob``, by
which the makers' own code divides them instead. With YaRN the temperature acts on the scores as well.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.errors import ModelFileError
from orrery.families import _deepseek
from orrery.families._config import Config
from orrery.families._keys import plain, size
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.routers import ExpertSelection, RawScores, SoftmaxRouter, TopK

ARCHITECTURE = "DeepseekV2ForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_deepseek.DEFAULTS,
    "vocab_size": size(102400),
    "hidden_size": size(4096),
    "intermediate_size": size(11008),
    "moe_intermediate_size": size(1407),
    "num_hidden_layers": size(32),
    "num_attention_heads": size(32),
    "first_k_dense_replace": 0,
    "n_routed_experts": 64,
    "n_shared_experts": size(2, null=True),
    "num_experts_per_tok": size(None),
    "topk_method": "greedy",
    "n_group": size(None),
    "topk_group": size(None),
    "routed_scaling_factor": 1.0,
    "max_position_embeddings": 2048,
    "mlp_bias": False,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 16,
    "intermediate_size": 24,
    "moe_intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    **_deepseek.TINY_LATENTS,
    "first_k_dense_replace": 1,
    "n_routed_experts": 6,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "topk_method": "group_limited_greedy",
    "n_group": 3,
    "topk_group": 2,
    "routed_scaling_factor": 2.0,
    "max_position_embeddings": 48,
}
_FIXED = {"scoring_func": "softmax", "moe_layer_freq": 1}
_IGNORED = (
    "num_key_value_heads", "ep_size", "aux_loss_alpha", "seq_aux",
    "output_router_logits", "router_aux_loss_coef", "norm_topk_prob",
)  # fmt: skip


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _deepseek.check(Config("deepseek_v2", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED))
    weighing = RawScores(scale=float(c["routed_scaling_factor"]))
    router = SoftmaxRouter.Spec(experts=c["n_routed_experts"], choice=_choice(c), weighing=weighing)
    return _deepseek.decoder(c, router, interleaved=True, bias=c["mlp_bias"])


def _choice(c: Config) -> ExpertSelection:
    """Return how experts are chosen; a group is judged by its best expert."""
    chosen, method = c["num_experts_per_tok"], c["topk_method"]
    if not chosen:
        raise ModelFileError(f"{c.family}: num_experts_per_tok is missing", "it is 6 in the published models")
    if method == "greedy":
        return TopK(chosen=chosen)
    if method == "group_limited_greedy" and not (c["n_group"] and c["topk_group"]):
        raise ModelFileError(f"{c.family}: {method} without n_group and topk_group", "add both, or choose greedy")
    if method == "group_limited_greedy":
        return _deepseek.groups(c)
    raise ModelFileError(f"{c.family}: topk_method {method!r} is not known", "known: greedy, group_limited_greedy")


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, which depend on the number of heads."""
    return _deepseek.weights({**plain(DEFAULTS), **config})
