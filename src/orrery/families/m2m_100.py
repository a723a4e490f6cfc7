"""M2M-100 (Fan et al. 2020) and NLLB-200 (NLLB Team 2022): translators between many languages.

Peculiar to it: mBART's two stacks with norms in front, without a norm of the embeddings and a shift of the logits;
sinusoidal positions that begin behind the padding's id, whose wavelengths end at 2 pi 10,000 exactly; embeddings scaled
by ``sqrt(D)``. A target begins with the end of a text and then the token of its language, which generation is told.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule
from orrery.families import _bart
from orrery.families._config import Config
from orrery.families._keys import size, token
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.residual import Identity

ARCHITECTURE = "M2M100ForConditionalGeneration"
DEFAULTS: Mapping[str, Any] = {
    **_bart.DEFAULTS,
    "vocab_size": size(128112),
    "activation_function": "relu",
    "attention_dropout": 0.1,
    "scale_embedding": True,
    "decoder_start_token_id": token(2),
    "pad_token_id": token(1),
}
TINY = {**_bart.TINY, "pad_token_id": 1}
LEGACY_NAMES: Mapping[str, str | None] = {
    **_bart.LEGACY_NAMES,
    r"^(model\.)?(encoder|decoder)\.embed_positions\.(weights|_float_tensor)$": None,
}
_NORMS = _bart.Norms(slot="pre", embedding=False, final=True)
_FIXED = {**_bart.FIXED, **_NORMS.settings}


def spec(config: Mapping[str, Any]) -> EncoderDecoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("m2m_100", config, DEFAULTS, fixed=_FIXED, ignored=_bart.IGNORED, aliases=_bart.ALIASES)
    return _bart.assemble(c, _NORMS, _bart.behind_padding(c), cap=Identity.Spec())


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files."""
    return _bart.rules(config, _NORMS.slot)
