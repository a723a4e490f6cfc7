"""RecurrentGemma (Google DeepMind 2024): Griffin's recurrence in two layers of three, a window in the third.

Peculiar to it: a gated linear recurrence (RG-LRU) behind a short convolution; attention looks back a window only, with
rotary positions on half of each head; biases in every network and behind every attention; embeddings multiplied by
``sqrt(D)`` rounded to bfloat16; gains stored minus one; capped logits. ``intermediate_size`` counts gate and up
together. Differs from transformers where a caller names positions that do not begin at zero: there no token is the
first of the recurrence then.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch

from orrery.checkpoints.rules import Rule, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _decoders, _gemma, _parts, _rotary, _windows
from orrery.families._config import Config
from orrery.families._keys import items, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import Biases
from orrery.nn.elementwise import SoftCap
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.linear.rg_lru import RGLRU
from orrery.nn.masks import RecurrentPast
from orrery.nn.residual import Scale
from orrery.nn.spec import ModuleSpec

ARCHITECTURE = "RecurrentGemmaForCausalLM"
DEFAULTS: Mapping[str, Any] = {
    "vocab_size": size(256000),
    "hidden_size": size(2560),
    "intermediate_size": size(7680),
    "num_hidden_layers": size(26),
    "num_attention_heads": size(10),
    "num_key_value_heads": size(None),
    "head_dim": size(None),
    "block_types": items(("recurrent", "recurrent", "attention")),
    "lru_width": size(None),
    "conv1d_width": size(4),
    "attention_window_size": size(2048),
    "hidden_activation": "gelu_pytorch_tanh",
    "partial_rotary_factor": positive(0.5),
    "logits_soft_cap": positive(30.0),
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    **_rotary.DEFAULTS,
}
TINY = {
    **_decoders.TINY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "lru_width": 24,
    "attention_window_size": 5,
}
_FIXED = {"embeddings_scale_by_sqrt_dim": True, "_block_types": ["recurrent", "recurrent", "attention"]}
_IGNORED = ("w_init_variance_scale", "final_w_init_variance_scale")
_ALIASES = {"sliding_window": "attention_window_size"}
_KINDS = {"recurrent": "mixer", "attention": "attention"}


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return the architecture that a ``config.json`` describes."""
    c = _config(config)
    norm, feed_forward = _gemma.norm(c), _feed_forward(c)
    branches = {"mixer": _recurrence(c), "attention": _attention(c)}
    blocks = [
        _parts.sequential({name: branches[name], "feed_forward": feed_forward}, pre=norm) for name in _branch_names(c)
    ]
    stack = _decoders.stack(
        c,
        blocks,
        norm,
        positions={"rotary": _decoders.rotary(c, share=c["partial_rotary_factor"], kinds=("default",))},
        masks={"local": _windows.causal(c, c["attention_window_size"]), "past": RecurrentPast()},
        enter=Scale.Spec(factor=_rounded(math.sqrt(c["hidden_size"]))),
    )
    return _decoders.decoder(c, stack, cap=SoftCap.Spec(cap=c["logits_soft_cap"]))


def _config(config: Mapping[str, Any]) -> Config:
    return Config("recurrent_gemma", config, DEFAULTS, fixed=_FIXED, ignored=_IGNORED, aliases=_ALIASES)


def _rounded(number: float) -> float:
    """Return a number as bfloat16 has it, in which the reference keeps this one whatever its weights are in."""
    return torch.tensor(number, dtype=torch.bfloat16).item()


def _branch_names(c: Config) -> list[str]:
    """Return what the branch of each layer is called: the listed kinds, over and over.

    Raises:
        ModelFileError: no kind, or another one.
    """
    kinds = list(c["block_types"] or ())
    if unknown := sorted({str(kind) for kind in kinds} - set(_KINDS)) or not kinds:
        raise ModelFileError(f"{c.family}: block_types has the unknown {unknown}", f"known: {', '.join(_KINDS)}")
    return [_KINDS[kinds[i % len(kinds)]] for i in range(c["num_hidden_layers"])]


def _recurrence(c: Config) -> ModuleSpec:
    hidden, parts = c["lru_width"] or c["hidden_size"], c["num_attention_heads"]
    if hidden % parts:
        message = f"{c.family}: lru_width = {hidden} is not divisible by num_attention_heads = {parts}"
        raise ModelFileError(message, "the gates have a matrix for each head")
    return RGLRU.Spec(
        hidden=hidden, parts=parts, length=c["conv1d_width"], activation=c.activation("hidden_activation")
    )


def _attention(c: Config) -> ModuleSpec:
    biased = c["attention_bias"]
    return _decoders.attention(c, mask="local", biases=Biases(q=biased, k=biased, v=biased, out=True))


def _feed_forward(c: Config) -> GatedMLP.Spec:
    """Return the network, whose gate and up are counted together.

    Raises:
        ModelFileError: nothing is left for either.
    """
    hidden, activation = c["intermediate_size"] // 2, c.activation("hidden_activation")
    if not hidden:
        message = f"{c.family}: intermediate_size = {c['intermediate_size']} is half a channel for gate and up each"
        raise ModelFileError(message, "it counts both together: choose two or more")
    return GatedMLP.Spec(hidden=hidden, activation=activation, bias=True)


def INITIAL_STD(config: Mapping[str, Any]) -> Mapping[str, float]:  # noqa: N802 - how a family draws new matrices
    """Return what new matrices are drawn with: attentions by their width and depth, all others alike."""
    c = _config(config)
    width = c["hidden_size"] ** -0.5
    return {
        r"attention\.branch\.(q|k|v)$": width,
        r"attention\.branch\.out$": (2 / c["num_hidden_layers"]) ** 0.5 * width,
        r"feed_forward|embed|vocabulary": (0.01 / c["conv1d_width"]) ** 0.5,
    }


_BLOCK = _decoders.BLOCK
_TIME, _LRU, _MIXER = (
    "model.layers.{i}.temporal_block",
    "model.layers.{i}.temporal_block.rg_lru",
    f"{_BLOCK}.mixer.branch",
)
_PROJECTIONS = (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v"), ("o_proj", "out"))
_LINEAR = (("linear_x", "x"), ("linear_y", "gate"), ("linear_out", "out"), ("conv_1d", "convolution"))
WEIGHTS: tuple[Rule, ...] = (
    rename("model.embed_tokens.weight", "embed.token.weight"),
    *(
        rename(f"{_decoders.LAYER}.{theirs}_pre_norm.weight", f"{_BLOCK}.{ours}.pre.weight")
        for theirs, ours in (("temporal", "mixer"), ("temporal", "attention"), ("channel", "feed_forward"))
    ),
    *renames(_TIME, f"{_BLOCK}.attention.branch", _PROJECTIONS),
    *renames(_TIME, _MIXER, _LINEAR),
    *(
        rename(f"{_LRU}.{theirs}_gate_{end}", f"{_MIXER}.{ours}.{end}")
        for theirs, ours in (("input", "write"), ("recurrent", "forget"))
        for end in ("weight", "bias")
    ),
    rename(f"{_LRU}.recurrent_param", f"{_MIXER}.pace"),
    *renames(f"{_decoders.LAYER}.mlp_block", f"{_BLOCK}.feed_forward.branch", _decoders.GATED),
    rename("model.final_norm.weight", "stack.final.weight"),
    rename("lm_head.weight", "head.vocabulary.weight"),
)
