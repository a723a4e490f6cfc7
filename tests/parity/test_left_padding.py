"""Where transformers counts padding on the left and we do not: what docs/models.md says of it."""

from inspect import signature
from pathlib import Path

import pytest
import torch

from orrery.families import load_family
from tests.parity.helper import error, pair, random_ids
from tests.parity.stand_ins import class_of

COUNTED = (
    "gpt2", "gpt_neo", "openai_gpt", "bert", "albert", "electra", "distilbert", "bart", "mbart", "marian", "pegasus",
)  # fmt: skip
"""Families with absolute positions, which a plain call of transformers counts from the first place of the row."""

LEFT_OUT = ("mamba", "mamba2", "falcon_mamba", "jamba")
"""Recurrent families whose state transformers keeps free of padding; its RWKV reads no mask."""

NOT_COUNTED = ("opt", "roberta", "llama", "bloom", "t5", "deberta")
"""Families whose positions come from the mask or from the padding's id, or are relative."""


def both_ways(family):
    """Return the reference's and our logits of a row alone and padded on the left, and a call with its positions."""
    rules = load_family(family)
    cls = class_of(rules.ARCHITECTURE)
    config = {**rules.TINY, "vocab_size": 97, "pad_token_id": 1}
    both = pair(cls.config_class.model_type, auto=rules.ARCHITECTURE, **config)
    ids, real = random_ids(1, 9), torch.arange(13)[None] >= 4
    padded = torch.cat([torch.full((1, 4), 1), ids], 1)
    targets = {"decoder_input_ids": random_ids(1, 5, seed=2)} if both.theirs.config.is_encoder_decoder else {}
    keep = real if not targets else torch.ones(1, 5, dtype=torch.bool)
    alone = both.reference(ids, **targets).logits[0]
    theirs = both.reference(padded, attention_mask=real.long(), **targets).logits[keep]
    mask = {"source_real": real} if targets else {"real": real}
    ours = both.ours.logits(padded, *targets.values(), **mask)[keep]
    told = None
    if "position_ids" in signature(both.theirs.forward).parameters and not targets:
        positions = (real.long().cumsum(1) - 1).clamp(min=0)
        told = both.reference(padded, attention_mask=real.long(), position_ids=positions).logits[keep]
    return alone, theirs, ours, told


@pytest.mark.parametrize("family", COUNTED)
@torch.no_grad()
def test_the_reference_counts_padding_on_the_left_unless_it_is_told_the_positions(family):
    alone, theirs, ours, told = both_ways(family)
    assert error(theirs, alone) > 1e-4
    assert error(ours, alone) < 1e-9
    assert told is None or error(told, alone) < 1e-9


@pytest.mark.parametrize("family", [*NOT_COUNTED, *LEFT_OUT])
@torch.no_grad()
def test_the_reference_leaves_padding_out_where_positions_are_relative_or_come_from_the_mask(family):
    alone, theirs, ours, _ = both_ways(family)
    assert error(theirs, alone) < 1e-9
    assert error(ours, alone) < 1e-9


@torch.no_grad()
def test_the_reference_s_rwkv_reads_padding_on_the_left():
    alone, theirs, ours, _ = both_ways("rwkv")
    assert error(theirs, alone) > 1e-4
    assert error(ours, alone) < 1e-9


def test_the_documentation_names_them():
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    named = text.partition("Padding never counts")[2].partition("\n\n- ")[0]
    titles = (
        "GPT-2",
        "GPT-Neo",
        "GPT 1",
        "BERT",
        "ALBERT",
        "ELECTRA",
        "DistilBERT",
        "BART",
        "mBART",
        "Marian",
        "Pegasus",
    )
    assert not [title for title in titles if title not in named]
