"""OPT (Zhang et al. 2022): GPT-3's architecture with relu, as trained by metaseq.

Peculiar to it: learned positions in a table with two unused leading rows; relu; biases everywhere; the head is the
embedding table. OPT-350M differs from its siblings: it is post-LN without a final norm, and its embeddings are narrower
than its stream, so that one projection leads into the stack and another back to the head.
"""

from collections.abc import Mapping
from typing import Any

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.families import _decoders, _legacy_names, _parts
from orrery.families._config import Config
from orrery.families._keys import size
from orrery.models.decoder import Decoder
from orrery.nn.elementwise import Projection
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import repeat

ARCHITECTURE = "OPTForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(50272),
    "hidden_size": size(768),
    "num_hidden_layers": size(12),
    "ffn_dim": size(3072),
    "max_position_embeddings": 2048,
    "do_layer_norm_before": True,
    "_remove_final_layer_norm": False,
    "word_embed_proj_dim": size(None),
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "num_attention_heads": size(12),
    "activation_function": "relu",
    "enable_bias": True,
    "layer_norm_elementwise_affine": True,
    "tie_word_embeddings": True,
}
TINY = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "ffn_dim": 40,
    "max_position_embeddings": 48,
    "word_embed_proj_dim": 16,
    "num_attention_heads": 3,
}
_IGNORED = ("layerdrop", "init_std", "activation_dropout")


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = Config("opt", config, DEFAULTS, ignored=_IGNORED)
    biased, learned, before = (
        c[key] for key in ("enable_bias", "layer_norm_elementwise_affine", "do_layer_norm_before")
    )
    norm, context, width = LayerNorm.Spec(bias=learned, gain=learned), c["max_position_embeddings"], c["hidden_size"]
    branches = {
        "attention": _decoders.attention(c, biases=_parts.biases(biased), position="none"),
        "feed_forward": MLP.Spec(hidden=c["ffn_dim"], activation=c.activation("activation_function"), bias=biased),
    }
    block = _parts.sequential(branches, dropout=c["dropout"], **{"pre" if before else "out": norm})
    entry = c["word_embed_proj_dim"] or width
    enter, leave = (_projection(entry, width, out) for out in (width, entry))
    stack = _decoders.stack(
        c,
        repeat(block, c["num_hidden_layers"]),
        norm if before and not c["_remove_final_layer_norm"] else Identity.Spec(),
        positions={"learned": LearnedPositions.Spec(length=context, offset=2)},
        enter=enter,
        entry=entry,
    )
    return _decoders.decoder(c, stack, transform=leave)


def _projection(entry: int, width: int, out: int) -> ModuleSpec:
    return Identity.Spec() if entry == width else Projection.Spec(width=out, bias=False)


LEGACY_NAMES = _legacy_names.headless("model.", "decoder")
WEIGHTS: tuple[Rule, ...] = (
    rename("model.decoder.embed_tokens.weight", "embed.token.weight"),
    rename("model.decoder.embed_positions.weight", "stack.positions.learned.table.weight"),
    rename("model.decoder.project_in.weight", "stack.enter.linear.weight"),
    *renames(
        "model.decoder.layers.{i}",
        "stack.blocks.{i}",
        (
            *((f"self_attn.{x}_proj", f"attention.branch.{x}") for x in ("q", "k", "v", "out")),
            *(("self_attn_layer_norm", f"attention.{slot}") for slot in ("pre", "out")),
            ("fc1", "feed_forward.branch.up"),
            ("fc2", "feed_forward.branch.down"),
            *(("final_layer_norm", f"feed_forward.{slot}") for slot in ("pre", "out")),
        ),
    ),
    *renames("model.decoder", "stack", (("final_layer_norm", "final"),)),
    rename("model.decoder.project_out.weight", "head.transform.linear.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
