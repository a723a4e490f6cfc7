"""Which parameters weight decay reaches: those of transformers' Trainer, but for what docs/training.md names."""

import pytest
import torch
from transformers import Trainer

from orrery.families import load_family, names
from orrery.families._registry import spec_of
from orrery.training.optimizers import undecayed
from tests.parity.stand_ins import class_of, has

FAMILIES = [name for name in names() if has(load_family(name).ARCHITECTURE)]
RECURRENT = {
    "bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "lfm2", "mamba", "mamba2", "nemotron_h",
    "qwen3_next", "recurrent_gemma", "rwkv", "zamba2",
}  # fmt: skip
"""Rates, steps and filters of each channel, which we never decay."""
TABLES = {"mpnet", "mt5", "t5", "umt5"}
"""A table of positions that the reference calls a bias, which we decay."""
VECTORS = {
    "apertus", "blip", "clip", "clip_vision_model", "deit", "diffllama", "dinov2", "gpt_oss", "siglip",
    "vision_encoder_decoder", "vit", "vit_mae", "yolos",
}  # fmt: skip
"""Vectors that are neither a bias nor a norm, such as the row of a picture's class, which we do not decay."""


def numbers(family: str) -> tuple[int, int]:
    """Return how many numbers are decayed by ours and by theirs, of the same tiny model."""
    rules = load_family(family)
    ours = spec_of(rules, {**rules.TINY, "pad_token_id": 0}).build()
    kind = class_of(rules.ARCHITECTURE)
    with torch.device("meta"):
        theirs = kind(kind.config_class(**{**rules.TINY, "pad_token_id": 0}))
    # It reads no field of a Trainer.
    kept, decayed = undecayed(ours), set(Trainer.get_decay_parameter_names(None, theirs))
    return (
        sum(one.numel() for one in ours.parameters() if one.ndim >= 2 and one.requires_grad and id(one) not in kept),
        sum(one.numel() for name, one in theirs.named_parameters() if name in decayed and one.requires_grad),
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_weight_decay_reaches_what_the_trainer_of_transformers_decays(family):
    ours, theirs = numbers(family)
    if family in TABLES:
        assert ours > theirs
    elif family in RECURRENT | VECTORS:
        assert ours < theirs
    else:
        assert ours == theirs
