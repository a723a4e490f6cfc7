"""What the recurrent language models share: layers on top of each other, without a residual path between them."""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import RecurrentPast
from orrery.nn.residual import Dropout, NoSkip, Residual
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(10000),
    "hidden_size": size(650),
    "num_layers": size(2),
    "dropout": 0.0,
    "tie_word_embeddings": False,
    "max_position_embeddings": 1024,
}
TINY = {"vocab_size": 61, "hidden_size": 16, "num_layers": 2, "max_position_embeddings": 48}


def assemble(name: str, config: Mapping[str, Any], recurrence: ModuleSpec) -> Decoder.Spec:
    """Return a language model of recurrent layers; dropout acts between them, never through time (Zaremba 2014)."""
    c = Config(name, config, DEFAULTS)
    layer = Residual.Spec(branch=recurrence, skip=NoSkip.Spec(), dropout=c["dropout"])
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(Block.Spec(residuals={"recurrence": layer}), c["num_layers"]),
            positions={},
            masks={"past": RecurrentPast()},
            start=Dropout.Spec(rate=c["dropout"]),
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"], bias=True),
    )


_ENGINE = "stack.blocks.{i}.recurrence.branch.engine"
WEIGHTS: tuple[Rule, ...] = tuple(
    rename(name, name)
    for name in (
        "embed.token.weight",
        *(f"{_ENGINE}.{part}_{side}_l0" for part in ("weight", "bias") for side in ("ih", "hh")),
        "head.vocabulary.weight",
        "head.vocabulary.bias",
    )
)
"""The files carry our names: no other ``model_type`` is like these."""
