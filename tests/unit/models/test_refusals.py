"""What bricks, models and what writes with them refuse: the class of the error, what is wrong, and what to do."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import refusals
from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family
from orrery.generation.beams import HuggingFacePenalty
from orrery.generation.grammar import Form
from orrery.generation.guides import SpellingIndex, without
from orrery.models import limits
from orrery.models.encoder import Encoder
from orrery.models.heads._head import counted
from orrery.models.places import _check_shape, _extent
from orrery.models.soundness import check_whole
from orrery.nn.cache.contract import Cache
from orrery.nn.masks import Need
from orrery.nn.positions.rotary import Rotary
from orrery.nn.recurrent.encoders import StackedLSTMEncoder
from orrery.nn.spec import register
from stand_ins import stand_in
from tiny_models import smallest

PREFIX = frozenset({Need.PREFIX})


def spec(family):
    rules = load_family(family)
    return rules.spec(rules.TINY)


def headless():
    """Return an encoder without any head."""
    gpt2 = spec("gpt2")
    return Encoder.Spec(width=gpt2.width, context=9, embed=gpt2.embed, stack=gpt2.stack, heads={}).build(0)


def extent(needs, prefix):
    return _extent(needs, prefix, 2, 5, stand_in(Cache, longest=0), torch.device("cpu"))


REFUSED = {
    "a head of no encoder": (lambda: headless().head, UsageError, "no head at all", "it has: hidden()"),
    "an answer of no head": (
        lambda: headless()({"ids": torch.ones(1, 2, dtype=torch.long)}), UsageError, "this model has no head at all",
        "hidden() gives its final stream",
    ),
    "positions of another shape": (
        lambda: _check_shape("positions", torch.ones(3, 5), 2, 5), UsageError,
        r"positions of shape \[3, 5\] for 2 x 5 tokens", "one for each token",
    ),
    "positions of another length": (
        lambda: _check_shape("real", torch.ones(2, 4), 2, 5), UsageError, r"real of shape \[2, 4\] for 2 x 5 tokens",
        "one for each token",
    ),
    "positions between": (
        lambda: _check_shape("positions", torch.ones(2, 5), 2, 5), UsageError, "positions of torch.float32",
        "whole numbers or truth values",
    ),
    "a prefix that no mask reads": (
        lambda: extent(frozenset(), torch.ones(2)), UsageError, "no mask with a prefix", "leave prefix away",
    ),
    "a prefix of other rows": (
        lambda: extent(PREFIX, torch.ones(3)), UsageError, r"prefix of shape \[3\] for 2 x 5", "one length a row: [B]",
    ),
    "a prefix of other tokens": (
        lambda: extent(PREFIX, torch.ones(2, 4)), UsageError, r"prefix of shape \[2, 4\] for 2 x 5", "document: [B, L]",
    ),
    "a session without a source": (
        lambda: smallest("gpt2").start(torch.ones(1, 2, dtype=torch.long), 4)[1].read, UsageError,
        "this session has read no source", "start it with an encoder-decoder",
    ),
    "no whole model": (
        lambda: check_whole(Rotary.Spec(width=4)), ModelFileError, "Rotary is not a whole model", "decoder.Decoder",
    ),
    "no blocks": (
        lambda: check_whole(replace(spec("gpt2"), stack=replace(spec("gpt2").stack, blocks=()))), ModelFileError,
        "stack has no blocks", "a model has at least one layer",
    ),
    "too many experts": (
        lambda: limits.check_size(spec("mixtral"), 10**9, Path("config.json")), ModelFileError,
        "config.json describes .* experts, more than any model has", "get the file again from its source",
    ),
    "labels that nobody counts": (
        lambda: counted(None, "token"), UsageError, "a head of kind token has no number of labels",
        "give model.heads.NAME.labels",
    ),
    "token_types": (
        lambda: smallest("gpt2").embed(torch.ones(1, 2, dtype=torch.long), torch.zeros(1, 2, dtype=torch.long)),
        UsageError, "this model has no token types", "leave token_types (token_type_ids) away",
    ),
    "an odd rotation": (
        lambda: Rotary.Spec(width=5).build(5), UsageError, "5 channels of a head rotate: an odd number", "in pairs",
    ),
    "no layer": (
        lambda: StackedLSTMEncoder.Spec(layers=0).build(4), UsageError, "an encoder of 0 layers leaves no state",
        "give it at least one",
    ),
    "no part": (
        lambda: register(Path), UsageError, "Path is no part that can be registered", "nest a class Spec(ModuleSpec)",
    ),
    "a part of ours": (
        lambda: register(Rotary), UsageError, "Rotary is no part that can be registered", "nest a class Spec",
    ),
    "a penalty that no length survives": (
        lambda: HuggingFacePenalty(-61), UsageError, "length_penalty = -61 is not possible", "at least -60",
    ),
    "a grammar that is no text": (
        lambda: Form(grammar=3), UsageError, "the grammar '3' is no text", "give the grammar as a text",
    ),
    "a schema that is no object": (
        lambda: Form(schema=[1]), UsageError, r"'\[1\]' is no JSON schema", "a schema is an object",
    ),
    "a form of two": (
        lambda: Form(regex="a", grammar="b"), UsageError, "a form of regex and grammar", "a schema or a grammar",
    ),
    "a bad word that is no text": (
        lambda: without([3], None), UsageError, "the bad word '3' is no text", "give words as texts",
    ),
    "a bad word of nothing": (
        lambda: without([""], stand_in(SpellingIndex)), UsageError, "an empty bad word stands everywhere",
        "leave it away",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_by_name_with_what_to_do(case, monkeypatch):
    monkeypatch.setattr(limits, "ALL_EXPERTS", 1)
    refusals.check(REFUSED[case])
