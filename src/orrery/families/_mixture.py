"""What families with experts share: the mixture, which layers have one, and the names in their files."""

from collections.abc import Mapping, Sequence

from orrery.checkpoints.rules import Rule, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import Normalised, RawScores, SoftmaxRouter, TopK
from orrery.nn.masks import Mask
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.scheme import PositionSpec
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


def listed(c: Config, key: str, mixture: ModuleSpec) -> list[ModuleSpec]:
    """Return each layer's feed-forward network where a key lists ``dense`` and ``sparse`` ones; all sparse without it.

    Raises:
        ModelFileError: another kind of layer, or another number of layers.
    """
    layers = c["num_hidden_layers"]
    kinds = c[key] or ["sparse"] * layers
    if unknown := sorted({str(kind) for kind in kinds} - {"dense", "sparse"}):
        raise ModelFileError(f"{c.family}: {key} has the unknown {', '.join(unknown)}", "known: dense, sparse")
    if len(kinds) != layers:
        raise ModelFileError(
            f"{c.family}: {key} lists {len(kinds)} layers, num_hidden_layers is {layers}", "list every layer once"
        )
    return [mixture if kind == "sparse" else _decoders.feed_forward(c) for kind in kinds]


def decoder(
    c: Config,
    attentions: Sequence[ModuleSpec],
    feed_forwards: Sequence[ModuleSpec],
    masks: Mapping[str, Mask] | None = None,
    positions: Mapping[str, PositionSpec] | None = None,
) -> Decoder.Spec:
    """Return Llama with these branches, layer by layer."""
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    blocks = [_decoders.pre_norm(norm, *branches) for branches in zip(attentions, feed_forwards, strict=True)]
    return _decoders.decoder(c, _decoders.stack(c, blocks, norm, masks=masks, positions=positions))


THEIRS, OURS = f"{_decoders.LAYER}.mlp", f"{_decoders.BLOCK}.feed_forward.branch"
"""Where a layer keeps its mixture: nearly all files, and ours."""

SPARSE = f"{_decoders.LAYER}.block_sparse_moe"
"""Where Mixtral's kin keep theirs."""

EXPERTS: tuple[Rule, ...] = (
    *renames(THEIRS, OURS, [("gate", "router.linear")]),
    *renames(f"{THEIRS}.experts.{{x}}", f"{OURS}.experts.{{x}}", _decoders.GATED),
)
"""The router and the experts as Qwen and OLMoE write them: one tensor an expert."""

MIXTRAL: tuple[Rule, ...] = (
    *renames(SPARSE, OURS, [("gate", "router.linear")]),
    *renames(f"{SPARSE}.experts.{{x}}", f"{OURS}.experts.{{x}}", (("w1", "gate"), ("w3", "up"), ("w2", "down"))),
)
"""The same as Mixtral writes them."""
