"""What families with experts share: the mixture, which layers have one, and the names in their files."""

from collections.abc import Mapping, Sequence

from orrery.checkpoints.rules import Rule, renames
from orrery.families import _decoders
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import Normalised, RawScores, SoftmaxRouter, TopK
from orrery.nn.masks import Mask
from orrery.nn.norms import RMSNorm
from orrery.nn.spec import ModuleSpec


def experts(c: Config, count: int, hidden: str, *, normalised: bool, shared: tuple[ModuleSpec, ...] = ()) -> MoE.Spec:
    """Return ``count`` gated networks and the router that weighs the chosen by their (normalised) probabilities."""
    return MoE.Spec(
        expert=_decoders.feed_forward(c, hidden=c[hidden]),
        router=SoftmaxRouter.Spec(
            experts=count,
            choice=TopK(chosen=c["num_experts_per_tok"]),
            weighing=Normalised() if normalised else RawScores(),
        ),
        shared=shared,
    )


def mixed(c: Config, count: int, mixture: ModuleSpec) -> list[ModuleSpec]:
    """Return each layer's feed-forward network: a mixture at every ``decoder_sparse_step``, dense ones elsewhere."""
    only_dense, step = set(c["mlp_only_layers"] or ()), c["decoder_sparse_step"]
    return [
        mixture if count and i not in only_dense and (i + 1) % step == 0 else _decoders.feed_forward(c)
        for i in range(c["num_hidden_layers"])
    ]


def decoder(
    c: Config, attentions: Sequence[ModuleSpec], feed_forwards: Sequence[ModuleSpec], masks: Mapping[str, Mask]
) -> Decoder.Spec:
    """Return Llama with these branches, layer by layer."""
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    blocks = [_decoders.pre_norm(norm, *branches) for branches in zip(attentions, feed_forwards, strict=True)]
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, masks=masks))


THEIRS, OURS = f"{_decoders.LAYER}.mlp", f"{_decoders.BLOCK}.feed_forward.branch"
"""Where a layer keeps its mixture: nearly all files, and ours."""

EXPERTS: tuple[Rule, ...] = (
    *renames(THEIRS, OURS, [("gate", "router.linear")]),
    *renames(f"{THEIRS}.experts.{{x}}", f"{OURS}.experts.{{x}}", _decoders.GATED),
)
"""The router and the experts as Qwen and OLMoE write them: one tensor an expert."""
