"""VaultGemma (Google 2025): Gemma 2 trained under differential privacy, without norms behind its branches.

Peculiar to it: RMSNorm in front of each branch only. As in Gemma 2: windows in every second layer, capped scores and
logits, the louder embeddings, gains stored minus one, GEGLU, a tied head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.families import _decoders, _gemma, _windows, gemma2
from orrery.families._config import Config
from orrery.families._keys import size, text
from orrery.models.decoder import Decoder

ARCHITECTURE = "VaultGemmaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **gemma2.DEFAULTS,
    "num_key_value_heads": size(4),
    "head_dim": size(256),
    "hidden_activation": text("gelu_pytorch_tanh"),
}
TINY = gemma2.TINY


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("vaultgemma", config, DEFAULTS)
    alternating = [_windows.FULL if i % 2 else _windows.SLIDING for i in range(c["num_hidden_layers"])]
    names, masks = _windows.by_layer(c, alternating, c["sliding_window"])
    blocks = []
    for name in names:
        attention, feed_forward = _gemma.branches(c, mask=name, cap=c["attn_logit_softcapping"])
        blocks.append(_decoders.pre_norm(_gemma.norm(c), attention, feed_forward))
    return _gemma.decoder(c, blocks, masks=masks)


WEIGHTS = (*_decoders.weights(*_gemma.NORMS[::2]), *_decoders.gated_weights())
