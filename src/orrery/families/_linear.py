"""What our own language models of linear mixers share: Llama's block with a mixer in the place of its attention."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.models.meta_device import build_on_meta
from orrery.models.model import ModelSpec
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Mask, RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(32000),
    "hidden_size": size(768),
    "intermediate_size": size(2048),
    "num_hidden_layers": size(12),
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
"""The keys that all of them have; a family adds those of its mixer."""
TINY = {
    "vocab_size": 61,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "max_position_embeddings": 48,
}


def block(c: Config, mixer: ModuleSpec, name: str = "mixer") -> Block.Spec:
    """Return a block of a mixer and a gated network, each behind a norm; ``name`` is that of the mixer's residual."""
    feed_forward = GatedMLP.Spec(hidden=c["intermediate_size"])
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    return _parts.sequential({name: mixer, "feed_forward": feed_forward}, pre=norm)


def decoder(
    c: Config,
    blocks: Sequence[Block.Spec],
    *,
    positions: Mapping[str, PositionSpec] | None = None,
    masks: Mapping[str, Mask] | None = None,
) -> Decoder.Spec:
    """Return the language model around blocks; where nothing else is said, they know the order by their states."""
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=tuple(blocks),
            positions=positions or {},
            masks=masks or {"past": RecurrentPast()},
            final=RMSNorm.Spec(eps=c["rms_norm_eps"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


def assemble(c: Config, mixer: ModuleSpec) -> Decoder.Spec:
    """Return a language model whose blocks all have the same mixer."""
    return decoder(c, repeat(block(c, mixer), c["num_hidden_layers"]))


def own_names(spec: Callable[[Mapping[str, Any]], ModelSpec]) -> Callable[[Mapping[str, Any]], tuple[Rule, ...]]:
    """Return the rules of files that carry our names, for no other ``model_type`` is like these.

    Args:
        spec: the family's function from a configuration to its architecture.
    """

    def rules(config: Mapping[str, Any]) -> tuple[Rule, ...]:
        return tuple(rename(name, name) for name in build_on_meta(spec(config)).state_dict())

    return rules
