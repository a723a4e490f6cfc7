"""BiMamba (Schiff et al. 2024): an encoder of Mamba that reads every text in both directions.

Peculiar to it: in each block one Mamba reads forward, another backward, and what they say is added; a gated network
follows, and no position is told to anything. The work grows linearly with the length. Differs from the paper: the two
directions share no weights, and there is nothing for the two strands of DNA.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _heads, _linear, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.encoder import Encoder
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.heads import LanguageModelHead, Mean, Pooler, SequenceHead, TokenHead
from orrery.nn.linear.backward import Backward
from orrery.nn.linear.mamba import Mamba
from orrery.nn.masks import RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.residual import Sum
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "BiMambaForMaskedLM"
LIBRARY = "orrery"
DEFAULTS: Mapping[str, Any] = {
    **_linear.DEFAULTS,
    "state_size": size(16),
    "expand": size(1),
    "conv_kernel": size(4),
    "time_step_rank": size(48),
    **_heads.DEFAULTS,
}
TINY = {**_linear.TINY, "state_size": 4, "time_step_rank": 2}


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a configuration describes."""
    c = Config("bimamba", config, DEFAULTS)
    norm = RMSNorm.Spec(eps=c["rms_norm_eps"])
    mamba = Mamba.Spec(
        hidden=c["expand"] * c["hidden_size"],
        rank=c["time_step_rank"],
        state=c["state_size"],
        length=c["conv_kernel"],
    )
    both = Sum.Spec(branches={"left_to_right": mamba, "right_to_left": Backward.Spec(mixer=mamba)})
    network = GatedMLP.Spec(hidden=c["intermediate_size"])
    return Encoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(
                _parts.sequential({"mixer": both, "feed_forward": network}, pre=norm), c["num_hidden_layers"]
            ),
            positions={},
            masks={"past": RecurrentPast()},
            final=norm,
        ),
        heads=_heads.choose(c, ARCHITECTURE, _all_heads(c)),
    )


def _all_heads(c: Config) -> dict[str, ModuleSpec]:
    """Return every head that the family has."""
    return {
        "masked": LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
        "sequence": SequenceHead.Spec(pooler=Pooler.Spec(pool=Mean()), **_heads.of_row(c)),
        "token": TokenHead.Spec(**_heads.named(c)),
        "span": TokenHead.Spec(labels=2),
    }


WEIGHTS = _linear.own_names(spec)
