"""What looking inside refuses: the class of the error, what is wrong, and what to do."""

import pytest
import torch
from torch import nn

import refusals
from orrery.errors import UsageError
from orrery.inspection.attribution.frozen import matrix_of
from orrery.inspection.difference import difference
from orrery.inspection.explain.node import Numbers
from orrery.inspection.interventions.interventions import Interventions
from orrery.inspection.interventions.writing import EditedWriter
from orrery.inspection.pruning import without_heads
from orrery.inspection.research.edge_effects import edge_effects
from orrery.inspection.research.measures import logit_difference
from orrery.inspection.research.patching import SITES, _shape, activation_patching
from orrery.inspection.trace import trace
from orrery.tuning.lora import LoRA
from tiny_models import inputs_for, smallest, tiny

BY_HEAD = next(site for site in SITES.values() if site.by_head)
IDS, OTHER = torch.tensor([[5, 9, 31, 7]]), torch.tensor([[5, 9, 30, 7]])
MIXED, STREAM = "blocks.0.attention.mixed", "blocks.0.resid_post"


@pytest.fixture(scope="module")
def model():
    return smallest("gpt2")


def edits(*plain):
    return Interventions.of(plain, {"B": {STREAM: torch.zeros(1, 4, 24)}})


def writer(model, *plain):
    return EditedWriter(model, edits(*plain))


REFUSED = {
    "another length": (
        lambda m: difference(trace(m, IDS), trace(m, IDS[:, :3])), r"a run of logits \[1, 3, \d+\] is compared with",
        "take texts of one length",
    ),
    "no next tokens": (
        lambda m: difference(*[trace(smallest("vit"), *inputs_for(smallest("vit")))] * 2), "are none of next tokens",
        "compare the tensors by their keys",
    ),
    "a matrix that is none": (
        lambda m: matrix_of(nn.ReLU()), "a ReLU has no single matrix", "merge its adapters: orrery.tuning.merge",
    ),
    "what was not kept": (
        lambda m: Numbers({}, {}, {})["blocks.0.q"], "the pass has not kept blocks.0.q", "keep everything: keep=['*']",
    ),
    "a place from the end": (
        lambda m: writer(m, {"at": STREAM, "op": "zero", "position": -1}), "counts from the end of a text that grows",
        "count positions from its beginning, from 0",
    ),
    "a mean that changes": (
        lambda m: writer(m, {"at": STREAM, "op": "mean"}), "over positions changes with every token",
        "take the mean of another trace: source",
    ),
    "every position of another": (
        lambda m: writer(m, {"at": STREAM, "op": "patch", "from": "B"}), "takes every position of another trace",
        "name the positions, of add the one from_position",
    ),
    "two prompts": (
        lambda m: writer(m, {"at": STREAM, "op": "zero", "position": 0}).start(IDS.repeat(2, 1), 9),
        "edits are given with 2 prompts", "continue one text at a time",
    ),
    "heads of an adapted model": (
        lambda m: without_heads(LoRA(rank=1).apply(tiny("gpt2")), {"blocks.0.attention": [0]}),
        "the model has been transformed, and its weights are not its own", "merge adapters first",
    ),
    "edits of no text": (
        lambda m: edge_effects(edits({"at": STREAM, "op": "zero"}), "blocks.0.attention.pattern", 0, 0, torch.ones(1)),
            "these edits belong to no text",
        "take those of a trace: inside.edit()",
    ),
    "answers for other texts": (
        lambda m: logit_difference([1, 2, 3], 4)(torch.zeros(1, 2, 9)), "3 answers for 2 texts", "one for each",
    ),
    "an answer that is no token": (
        lambda m: logit_difference(9, 4)(torch.zeros(1, 2, 9)), "an answer is no token", "give ids from 0 to 8",
    ),
    "a site that is none": (
        lambda m: activation_patching(m, IDS, OTHER, 3, at="nothing"), "to patch is called 'nothing'", "there is: ",
    ),
    "heads that make no grid": (
        lambda m: _shape(BY_HEAD, {"a": torch.zeros(1, 2, 4, 3), "b": torch.zeros(1, 3, 4, 3)}, 4),
        r"blocks have \[2, 3\] heads, which make no grid", "patch what the attention adds",
    ),
    "a site that no block has": (
        lambda m: activation_patching(smallest("lstm"), IDS, OTHER, 3, at="heads"), "no block of this model has",
        "it has: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_by_name_with_what_to_do(model, case):
    call, says, hint = REFUSED[case]
    refusals.check((call, UsageError, says, hint), model)
