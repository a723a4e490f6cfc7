"""Every objective that corrupts text: a run that stops and goes on is the run that never stopped."""

import copy
from typing import Any

import pytest
import torch

from objectives_toy import bound, generator, text_rows, tiny, tokenizer_of
from orrery.data.batches.seeds import derive_seed
from orrery.data.batches.token_windows import PureSource
from orrery.models.prefix_mask import with_prefix
from orrery.objectives import OBJECTIVES
from orrery.objectives._contracts import own_modules
from orrery.training.evaluate import Validation
from orrery.training.loop import Parts
from orrery.tuning import describe
from training_toy import run_weights, toy_recipe, toy_run

FAMILIES: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "masked": ("bert", "bert", {}),
    "next_sentence": ("bert", "bert", {"architectures": ["BertForPreTraining"]}),
    "sentence_order": ("albert", "bert", {"architectures": ["AlbertForPreTraining"]}),
    "replaced_token": ("electra", "bert", {"architectures": ["ElectraForPreTraining"]}),
    "span_corruption": ("t5", "t5", {}),
    "denoising": ("bart", "roberta", {}),
    "prefix": ("llama", None, {}),
}
"""A family for each, the frame of its tokenizer, and what its configuration says."""


class Rows(PureSource):
    """Rows of ordinary tokens with every field that an objective reads."""

    def __init__(self, tokenizer, needs, seed=0):
        self.tokenizer, self.needs, self.seed = tokenizer, needs, seed

    def batch(self, step):
        seed = derive_seed(self.seed, step) % 2**31
        ids = text_rows(self.tokenizer, 6, 17, seed)
        labels = torch.randint(2, (6,), generator=generator(seed))
        known = {"ids": ids[:, :-1], "targets": ids[:, 1:], "follows": labels, "in_order": labels}
        known |= {"real": torch.arange(16) < torch.tensor([[16], [9], [12], [16], [5], [7]])}
        known |= {"token_types": (torch.arange(16) > 6).long().expand(6, -1)}
        return {name: known[name] for name in self.needs}


def parts(name: str) -> Parts:
    family, frame, config = FAMILIES[name]
    tokenizer = tokenizer_of(frame)
    config |= {"decoder_start_token_id": tokenizer.special("end")} if family in ("t5", "bart") else {}
    model = tiny(family, tokenizer, **config)
    torch.manual_seed(2)  # a model that is built here begins alike each time, whatever ran before
    model = (with_prefix(model.spec).build() if name == "prefix" else copy.deepcopy(model)).float()
    objective = bound(name, model, tokenizer, **({"generator": 1 / 3} if name == "replaced_token" else {}))
    torch.manual_seed(1)
    own, needs = own_modules(objective, model), objective.needs
    held_back = Validation(Rows(tokenizer, needs, 99), 2, objective.evaluated(), inputs=model.spec.inputs)
    source = Rows(tokenizer, needs)
    return Parts(model, objective, source, held_back, describe, modules=own, inputs=model.spec.inputs)


@pytest.mark.parametrize("name", FAMILIES)
def test_stopped_and_resumed_is_the_uninterrupted_run(name, tmp_path):
    constant = {"training__schedule": {"kind": "constant"}, "checkpoints__every": 2}
    toy_run(tmp_path / "whole", toy_recipe(**constant, training__steps=4), parts(name))
    for steps in (2, 4):
        toy_run(tmp_path / "parts", toy_recipe(**constant, training__steps=steps), parts(name), resume=True)
    whole, resumed = run_weights(tmp_path / "whole"), run_weights(tmp_path / "parts")
    assert whole.keys() == resumed.keys()
    assert len(whole) > 10
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_every_objective_that_makes_fields_is_held_to_the_law():
    makers = {name for name in OBJECTIVES.names() if OBJECTIVES.find(name).makes}
    own = {name for name in makers if OBJECTIVES.find(name).__module__.startswith("orrery.")}
    # Of pictures: tests/unit/objectives/test_pixels.py. Contrast draws nothing: its fields are the texts without -100.
    assert own == {*FAMILIES, "masked_patches", "contrast"}
