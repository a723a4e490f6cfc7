"""Marian (Junczys-Dowmunt et al. 2018): the translators of OPUS-MT, the original Transformer as a C++ program has it.

Peculiar to it: post-LN without a norm of the embeddings; sinusoidal positions, all sines first; embeddings scaled by
``sqrt(D)`` and silu in the published ones; a learned shift of the logits. Source and target may have vocabularies of
their own. Old files carry the table of sinusoids; it is computed here, and not written.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.families import _bart
from orrery.families._config import Config
from orrery.families._keys import count, size, token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.positions.sinusoidal import SinusoidalPositions

ARCHITECTURE = "MarianMTModel"
DEFAULTS: Mapping[str, Any] = {
    **_bart.DEFAULTS,
    "vocab_size": size(58101),
    "decoder_vocab_size": count(None),
    "share_encoder_decoder_embeddings": True,
    "decoder_start_token_id": token(58100),
}
TINY = {**_bart.TINY, "share_encoder_decoder_embeddings": False}
_NORMS = _bart.Norms(slot="out", embedding=False, final=False)
_FIXED = {**_bart.FIXED, **_NORMS.settings, "static_position_embeddings": True}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("marian", config, DEFAULTS, fixed=_FIXED, ignored=_bart.IGNORED, aliases=_bart.ALIASES)
    own = None
    if not c["share_encoder_decoder_embeddings"]:
        own = TokenEmbedding.Spec(vocabulary=c["decoder_vocab_size"] or c["vocab_size"])
    return _bart.assemble(c, _NORMS, SinusoidalPositions.Spec(halves=True), own)


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files; without a shared vocabulary each side names its own table."""
    rules = _bart.rules(config, _NORMS.slot)
    if not config.get("share_encoder_decoder_embeddings", True):
        names = {"reader.embed.token.weight": "encoder", "target.token.weight": "decoder"}
        prefix = "" if _bart.is_bare(config.get("architectures")) else "model."
        rules = (
            *(rename(f"{prefix}{side}.embed_tokens.weight", ours) for ours, side in names.items()),
            *(rule for rule in rules if not rule.theirs.endswith("shared.weight")),
        )
    return rules


def LEGACY_NAMES(config: Mapping[str, Any]) -> Mapping[str, str | None]:  # noqa: N802 - the name of a family's old names
    """Return the names of old files, which carry the table of sinusoids."""
    copies = _bart.LEGACY_NAMES if config.get("share_encoder_decoder_embeddings", True) else {}
    return {**copies, r"^(model\.)?(encoder|decoder)\.embed_positions\.weight$": None}
