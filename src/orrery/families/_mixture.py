"""What Llama-like families with experts share: Mixtral, Qwen 2 and 3 MoE, OLMoE and gpt-oss."""

from collections.abc import Mapping, Sequence

from orrery.checkpoints.rules import Rule, renames
from orrery.families import _llama
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import AsScored, Normalised, SoftmaxRouter, TopK
from orrery.nn.masks import Mask
from orrery.nn.norms import RMSNorm
from orrery.nn.spec import ModuleSpec


def experts(c: Config, count: int, hidden: str, *, normalised: bool, shared: tuple[ModuleSpec, ...] = ()) -> MoE.Spec:
    """Return ``count`` gated networks and the router that weighs the chosen by their (normalised) probabilities."""
    return MoE.Spec(
        expert=_llama.feed_forward(c, hidden=c[hidden]),
        router=SoftmaxRouter.Spec(
            experts=count,
            choice=TopK(chosen=c["num_experts_per_tok"]),
            weighing=Normalised() if normalised else AsScored(),
        ),
        shared=shared,
    )


def mixed(c: Config, count: int, mixture: ModuleSpec) -> list[ModuleSpec]:
    """Return each layer's feed-forward network: a mixture at every ``decoder_sparse_step``, dense ones elsewhere."""
    only_dense, step = set(c["mlp_only_layers"] or ()), c["decoder_sparse_step"]
    return [
        mixture if count and i not in only_dense and (i + 1) % step == 0 else _llama.feed_forward(c)
        for i in range(c["num_hidden_layers"])
    ]


def decoder(
    c: Config, attentions: Sequence[ModuleSpec], feed_forwards: Sequence[ModuleSpec], masks: Mapping[str, Mask]
) -> Decoder.Spec:
    """Return Llama with these branches, layer by layer."""
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    blocks = [_llama.pre_norm(norm, *branches) for branches in zip(attentions, feed_forwards, strict=True)]
    return _llama.decoder(c, _llama.stack(c, blocks, norm, masks=masks))


BLOCK, THEIRS = "stack.blocks.{i}", "model.layers.{i}"
FEED_FORWARD = f"{BLOCK}.feed_forward.branch"
GATED = tuple((f"{part}_proj", part) for part in ("gate", "up", "down"))
QK_NORMS: tuple[Rule, ...] = renames(
    f"{THEIRS}.self_attn", f"{BLOCK}.attention.branch", [("q_norm", "q_norm"), ("k_norm", "k_norm")], ["weight"]
)
EXPERTS: tuple[Rule, ...] = (
    *renames(f"{THEIRS}.mlp", FEED_FORWARD, [("gate", "router.linear")], ["weight"]),
    *renames(f"{THEIRS}.mlp.experts.{{x}}", f"{FEED_FORWARD}.experts.{{x}}", GATED, ["weight"]),
)
"""The router and the experts as Qwen and OLMoE write them: one tensor an expert."""
