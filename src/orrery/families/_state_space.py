"""What Mamba and its descendants in transformers share: blocks of one mixer behind a norm, without feed-forward."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orrery.checkpoints.rules import Rule, fused, rename, renames
from orrery.errors import ModelFileError
from orrery.families import _parts
from orrery.families._config import Config
from orrery.families._keys import Key, check_value, items, positive, size
from orrery.models.decoder import Decoder
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.linear.gating import GateThenNorm
from orrery.nn.linear.mamba import Mamba
from orrery.nn.linear.mamba2 import BoundedSteps, Mamba2, Projections
from orrery.nn.linear.time_steps import TimeSteps
from orrery.nn.masks import RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack, repeat

FRAME: Mapping[str, Any] = {
    "hidden_size": size(768),
    "state_size": size(16),
    "num_hidden_layers": size(32),
    "layer_norm_epsilon": 1e-5,
    "expand": positive(2),
    "conv_kernel": size(4),
    "use_bias": False,
    "use_conv_bias": True,
    "hidden_act": "silu",
    "time_step_min": positive(0.001),
    "time_step_max": positive(0.1),
    "time_step_floor": positive(1e-4),
    "max_position_embeddings": size(2048),
}
"""The keys that all of them have; ``max_position_embeddings`` is ours: their files bound no session, and say nothing of
the rows that a model was trained on."""
DEFAULTS: Mapping[str, Any] = {
    **FRAME,
    "vocab_size": size(50280),
    "intermediate_size": size(None, null=True),
    "time_step_rank": Key("auto", ("number", "text"), zero=False),
    "time_step_scale": positive(1.0),
    "tie_word_embeddings": True,
}
"""The keys of Mamba and Falcon Mamba."""
TINY = {
    "vocab_size": 61,
    "hidden_size": 16,
    "state_size": 4,
    "num_hidden_layers": 2,
    "time_step_rank": 2,
    "max_position_embeddings": 48,
}
FIXED: Mapping[str, Any] = {"time_step_init_scheme": "random"}
"""The paper's code can also set all step sizes alike; no published file does."""
IGNORED = ("residual_in_fp32", "rescale_prenorm_residual", "use_mambapy", "use_falcon_mambapy", "use_associative_scan")
"""The width of the stream in narrow formats, how weights are drawn, and which program computes the same numbers."""


def mixer(c: Config, **fields: Any) -> Mamba.Spec:
    """Return Mamba's mixer; the keywords are fields of it in which a family differs."""
    return Mamba.Spec(
        hidden=c["intermediate_size"] or int(c["expand"] * c["hidden_size"]),
        rank=rank_of_steps(c, "time_step_rank"),
        state=c["state_size"],
        length=c["conv_kernel"],
        activation=c.activation("hidden_act"),
        bias=c["use_bias"],
        convolution_bias=c["use_conv_bias"],
        time_steps=time_steps(c, scale=c["time_step_scale"]),
        **fields,
    )


def rank_of_steps(c: Config, key: str) -> int:
    """Return the rank of the step sizes: a sixteenth of the width where the configuration leaves it open.

    Raises:
        ModelFileError: it is no number of one or more, nor "auto".
    """
    rank: Any = c[key]
    if rank == "auto":
        return math.ceil(c["hidden_size"] / 16)
    check_value(c.family, key, rank, size(None))
    return int(rank)


def time_steps(c: Config, **fields: Any) -> TimeSteps:
    """Return how new step sizes are drawn."""
    low, high, floor = (c[f"time_step_{name}"] for name in ("min", "max", "floor"))
    return TimeSteps(low=low, high=high, floor=floor, **fields)


def bounded_steps(c: Config, **fields: Any) -> BoundedSteps:
    """Return the bounds of step sizes in ``time_step_limit``; the keywords are the other fields.

    Raises:
        ModelFileError: they are not the least and the most of anything.
    """
    match [None if bound in _NO_END else bound for bound in c["time_step_limit"] or (0.0, None)]:
        case [int() | float() as least, (None | int() | float()) as most] if 0 <= least <= (most or least):
            return BoundedSteps(least=float(least), most=None if most is None else float(most), **fields)
    message = f"{c.family}: time_step_limit = {c['time_step_limit']!r} is not the least and the most of a step size"
    raise ModelFileError(message, "write two numbers, the second Infinity where there is no most")


_NO_END = (None, math.inf, {"__float__": "Infinity"})
"""How files say that a number has no bound; transformers writes the last."""


def assemble(c: Config, mixer: ModuleSpec) -> Decoder.Spec:
    """Return the language model of blocks with this mixer."""
    norm = RMSNorm.Spec(eps=c["layer_norm_epsilon"])
    return Decoder.Spec(
        width=c["hidden_size"],
        context=c["max_position_embeddings"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(_parts.sequential({"mixer": mixer}, pre=norm), c["num_hidden_layers"]),
            positions={},
            masks={"past": RecurrentPast()},
            final=norm,
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"], tied=c["tie_word_embeddings"]),
    )


LEGACY_NAMES = {r"^backbone\.embedding\.": "backbone.embeddings."}
"""What the paper's code calls the words."""
THEIRS, OURS = "backbone.layers.{i}.mixer", "stack.blocks.{i}.mixer.branch"
"""What the names of a mixer begin with."""


def frame(*more: tuple[str, str]) -> tuple[Rule, ...]:
    """Return the rules of all but the projections; ``more`` are names of a mixer's own parameters, theirs and ours."""
    named = (("A_log", "a_log"), ("D", "skip"), ("conv1d.weight", "convolution.weight"), *more)
    return (
        rename("backbone.embeddings.weight", "embed.token.weight"),
        *(rename(f"{THEIRS}.{a}", f"{OURS}.{b}") for a, b in (*named, ("conv1d.bias", "convolution.bias"))),
        *renames("backbone.layers.{i}", "stack.blocks.{i}", (("norm", "mixer.pre"),), ("weight",)),
        *renames(THEIRS, OURS, (("out_proj", "out"),)),
        rename("backbone.norm_f.weight", "stack.final.weight"),
        rename("lm_head.weight", "head.vocabulary.weight"),
    )


def joined(theirs: str, parts: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules that projections of ours are one of theirs, with its bias if it has one."""
    return tuple(fused(f"{THEIRS}.{theirs}.{end}", tuple(f"{OURS}.{part}.{end}" for part in parts)) for end in _ENDS)


_ENDS = ("weight", "bias")

BESIDE_ATTENTION: Mapping[str, Any] = {
    "mamba_n_heads": size(128),
    "mamba_d_head": Key("auto", ("number", "text"), zero=False),
    "mamba_n_groups": size(1),
    "mamba_d_state": size(256),
    "mamba_d_conv": size(4),
    "mamba_expand": size(2),
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
    "time_step_limit": items((0.0, None)),
}
"""The keys of Mamba-2's mixer in models that have attention too."""


def mixer_beside_attention(c: Config, **fields: Any) -> Mamba2.Spec:
    """Return Mamba-2's mixer of a model that has attention too; the keywords are fields in which a family differs.

    Falcon-H1 names the mixer's channels, ``mamba_d_ssm``; the others make them of the width.

    Raises:
        ModelFileError: its heads do not make the width, or cannot be grouped.
    """
    named = c.values.get("mamba_d_ssm")
    heads, wide = c["mamba_n_heads"], named or c["mamba_expand"] * c["hidden_size"]
    width = c["mamba_d_head"]
    if width == "auto":
        width = wide // heads
    if not isinstance(width, int) or heads * width != wide:
        formula = "mamba_d_ssm" if named else "mamba_expand * hidden_size"
        message = f"{c.family}: {formula} = {wide}, and mamba_n_heads * mamba_d_head = {heads} * {width}"
        raise ModelFileError(message, "they are the same channels: let them be equal")
    c.divide("mamba_n_heads", "mamba_n_groups")
    bias = c["mamba_proj_bias"]
    usual = {"projections": Projections(bias=bias, out_bias=bias), "gating": GateThenNorm(eps=c["rms_norm_eps"])}
    return Mamba2.Spec(
        heads=heads,
        head_width=width,
        state=c["mamba_d_state"],
        groups=c["mamba_n_groups"],
        length=c["mamba_d_conv"],
        convolution_bias=c["mamba_conv_bias"],
        steps=bounded_steps(c),
        **{**usual, **fields},
    )


def mamba2_rules(theirs: str, ours: str) -> tuple[Rule, ...]:
    """Return the rules of Mamba-2's mixer, which a layer keeps in ``theirs`` and a block in ``ours``."""
    named = (("A_log", "a_log"), ("D", "skip"), ("dt_bias", "step_bias"), ("norm.weight", "norm"))
    parts = ("gate", "x", "write", "read", "step_size")
    return (
        *(rename(f"{theirs}.{a}", f"{ours}.{b}") for a, b in named),
        *renames(theirs, ours, (("conv1d", "convolution"), ("out_proj", "out"))),
        *(fused(f"{theirs}.in_proj.{end}", tuple(f"{ours}.{part}.{end}" for part in parts)) for end in _ENDS),
    )


WEIGHTS = (
    *frame(),
    *joined("in_proj", ("x", "gate")),
    *joined("x_proj", ("step_down", "write", "read")),
    *renames(THEIRS, OURS, (("dt_proj", "step_up"),)),
)
"""The rules of Mamba's files; Falcon Mamba's norms have no weights."""
