"""NPLM (Bengio et al. 2003): the neural probabilistic language model, the first over word vectors.

Peculiar to it: the vectors of the last ``order - 1`` words side by side, one hidden layer of tanh, and a softmax over
the vocabulary; what lies further back counts for nothing, as in an n-gram model. It differs from the paper in two
ways: vectors and hidden layer have one width; and ``direct``, the paper's connections past the hidden layer, reach the
logits through the same output matrix. The defaults are the paper's best network on the Brown corpus, at the width of
its hidden layer.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import rename
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import RecurrentPast
from orrery.nn.residual import NoSkip, Residual
from orrery.nn.stack import Stack
from orrery.nn.time_delay import TimeDelay

ARCHITECTURE = "NPLMLanguageModel"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(16383),
    "hidden_size": size(100),
    "order": 5,
    "direct": True,
    "dropout": 0.0,
    "tie_word_embeddings": False,
    "max_position_embeddings": 1024,
}
TINY = {"vocab_size": 61, "hidden_size": 16, "order": 4, "max_position_embeddings": 48}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("nplm", config, DEFAULTS)
    activations = {"hidden": "tanh"} | ({"direct": "linear"} if c["direct"] else {})
    words = TimeDelay.Spec(length=c["order"] - 1, activations=activations)
    layer = Residual.Spec(branch=words, skip=NoSkip.Spec(), dropout=c["dropout"])
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=(Block.Spec(residuals={"words": layer}),),
            positions={},
            masks={"past": RecurrentPast()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"], bias=True),
    )


_WORDS = "stack.blocks.0.words.branch.matrices"
WEIGHTS = tuple(
    rename(name, name)
    for name in (
        "embed.token.weight",
        *(f"{_WORDS}.{matrix}.{part}" for matrix in ("hidden", "direct") for part in ("weight", "bias")),
        "head.vocabulary.weight",
        "head.vocabulary.bias",
    )
)
"""The files carry our names: no other ``model_type`` is like these."""
