"""DeBERTa (He et al. 2021, "Decoding-enhanced BERT with Disentangled Attention"): BERT that compares places apart.

Peculiar to it: a score is content with content, content with distance and distance with content, divided by the root
of 3 C; distances come from one table for all layers and are clipped; the norm follows each addition, as in BERT; no
positions or token types are added to the embeddings where the configuration says so, as in the published models. Keys
have no bias. In its files q, k and v are one matrix, head by head, without biases; those of q and v lie beside it.
Differs from the paper: transformers leaves out the enhanced mask decoder, whose weights the published files lack.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import GroupInterleaved
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _deberta
from orrery.families._config import Config
from orrery.families._deberta import BLOCK, THEIRS
from orrery.families._keys import plain, size
from orrery.models.encoder import Encoder
from orrery.nn.attention.disentangled import Own
from orrery.nn.attention.multihead import Biases
from orrery.nn.positions.relative_embeddings import Clipped, RelativeEmbeddings
from orrery.nn.stack import repeat

ARCHITECTURE = "DebertaForMaskedLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50265),
    "hidden_size": size(768),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(12),
    "intermediate_size": size(3072),
    **_deberta.DEFAULTS,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 48,
    "relative_attention": True,
    "max_relative_positions": 5,
    "pos_att_type": ["c2p", "p2c"],
    "position_biased_input": False,
}
_FIXED = {"talking_head": False}


def spec(config: Mapping[str, Any]) -> Encoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("deberta", config, DEFAULTS, fixed=_FIXED, ignored=_deberta.IGNORED)
    projections = {"c2p": Own.Spec(width=c["hidden_size"], bias=False), "p2c": Own.Spec(width=c["hidden_size"])}
    attention = _deberta.attention(c, Biases(q=True, v=True, out=True), projections)
    blocks = repeat(_deberta.block(c, attention), c["num_hidden_layers"])
    relative = RelativeEmbeddings.Spec(rows=Clipped(reach=_deberta.reach(c)))
    return _deberta.encoder(c, ARCHITECTURE, blocks, relative)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules: the fused matrix is cut head by head."""
    theirs, ours = f"{THEIRS}.attention.self", f"{BLOCK}.attention.branch"
    heads = {**plain(DEFAULTS), **config}["num_attention_heads"]
    terms = (("pos_proj", "content_to_position"), ("pos_q_proj", "position_to_content"))
    own = (
        Rule(f"{theirs}.in_proj.weight", tuple(f"{ours}.{x}.weight" for x in "qkv"), GroupInterleaved(heads)),
        *(rename(f"{theirs}.{x}_bias", f"{ours}.{x}.bias") for x in "qv"),
        *renames(theirs, f"{ours}.terms", ((a, f"{b}.projection.linear") for a, b in terms)),
    )
    return _deberta.rules(config, ARCHITECTURE, own)


def LEGACY_NAMES(config: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files."""
    return _deberta.old(config, spec(config).heads, WEIGHTS(config))
