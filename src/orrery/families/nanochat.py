"""nanochat (Karpathy 2025): a GPT for a hundred dollars, whose norms learn nothing.

Peculiar to it: RMSNorm without a gain, on the embeddings too and on each head of q and of k, after the rotation (which
leaves a head's length alone, so that before is the same); heads turn the other way round, which is the usual way with
the halves of each head exchanged; the squared relu without a gate; capped logits.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.layouts import HalvesExchanged
from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _decoders, _parts
from orrery.families._config import Config
from orrery.families._keys import plain, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.elementwise import SoftCap
from orrery.nn.norms import HeadNorm, PlainRMSNorm
from orrery.nn.residual import Identity
from orrery.nn.stack import repeat

ARCHITECTURE = "NanoChatForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    **_decoders.DEFAULTS,
    "vocab_size": size(50304),
    "hidden_size": size(768),
    "intermediate_size": size(8192),
    "num_hidden_layers": size(12),
    "num_attention_heads": size(6),
    "hidden_act": "relu2",
    "final_logit_softcapping": positive(15.0, null=True),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
}
TINY = _decoders.TINY


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("nanochat", config, DEFAULTS)
    norm, cap = PlainRMSNorm.Spec(eps=c["rms_norm_eps"]), c["final_logit_softcapping"]
    attention = _decoders.attention(
        c,
        biases=_parts.biases(c["attention_bias"]),
        qk_norm=HeadNorm.Spec(norm=norm, head_width=_decoders.head_width(c)),
    )
    block = _decoders.pre_norm(norm, attention, _decoders.plain_feed_forward(c))
    # No scaling with a factor on what was turned: the norm behind it would take it away again.
    positions = {"rotary": _decoders.rotary(c, kinds=("default", "linear", "dynamic", "llama3"))}
    stack = _decoders.stack(c, repeat(block, c["num_hidden_layers"]), norm, positions=positions, start=norm)
    return _decoders.decoder(c, stack, cap=SoftCap.Spec(cap=cap) if cap else Identity.Spec())


def WEIGHTS(config: Mapping[str, Any]) -> tuple[Rule, ...]:  # noqa: N802 - the name of a family's rules
    """Return the rules of the files, in which the halves of each head of q and of k stand the other way round."""
    c = {**plain(DEFAULTS), **config}
    heads = {"q": c["num_attention_heads"], "k": c["num_key_value_heads"] or c["num_attention_heads"]}
    theirs, ours = f"{_decoders.LAYER}.self_attn", f"{_decoders.BLOCK}.attention.branch"
    return (
        rename("model.embed_tokens.weight", "embed.token.weight"),
        *(
            Rule(f"{theirs}.{x}_proj.{end}", (f"{ours}.{x}.{end}",), HalvesExchanged(heads[x]))
            for x in "qk"
            for end in ("weight", "bias")
        ),
        *renames(theirs, ours, (("v_proj", "v"), ("o_proj", "out"))),
        *renames(f"{_decoders.LAYER}.mlp", f"{_decoders.BLOCK}.feed_forward.branch", (("fc1", "up"), ("fc2", "down"))),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )
