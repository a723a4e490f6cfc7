"""A beam that is refilled ends as transformers' beam search does, for every way to stop."""

from functools import partial

import pytest
import torch
import transformers
from tests.parity.pipelines import folder

from orrery.generation.beams import HuggingFacePenalty, RefilledBeam
from orrery.generation.constraints import Constraints
from orrery.generation.row import Limits
from orrery.generation.search import beam_search
from orrery.language_model.load import load


@pytest.mark.parametrize("early_stopping", [True, False, "never"])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.5])
def test_it_ends_as_the_reference_does(early_stopping, penalty, tmp_path):
    folder(tmp_path, "gpt2", "AutoModelForCausalLM", pad_token_id=1)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    lm = load(tmp_path, "cpu", say=lambda line: None)
    beam = partial(RefilledBeam, early_stopping=early_stopping)
    short = 0
    for prompt in ([5, 70, 9], [100, 4], [33]):
        keys = {"num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 7, "do_sample": False}
        row = torch.tensor([prompt])
        ends = lm.logits(row)[0, -1].topk(12).indices[1::3].tolist()  # what ends is likely, and never the best
        keys["eos_token_id"] = ends
        expected = theirs.generate(
            row, attention_mask=torch.ones_like(row), early_stopping=early_stopping, length_penalty=penalty,
            pad_token_id=1, return_dict_in_generate=True, output_scores=True, **keys,
        )  # fmt: skip
        penalised = HuggingFacePenalty(penalty)
        (answers,) = beam_search(
            lm.model, [prompt], Limits(7, 64, frozenset(ends)), 3, penalty=penalised, answers=3, beam=beam
        )
        scores = expected.sequences_scores.tolist()
        assert [one.score for one in answers] == pytest.approx(scores, abs=1e-4)
        for one, ids in zip(answers, expected.sequences.tolist(), strict=True):
            assert ids[len(prompt) :][: len(one.ids)] == one.ids
        short += sum(len(one.ids) < 7 for one in answers)
    assert short or penalty > 1  # a penalty that favours long answers lets none end early


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_beams_over_a_source_are_those_of_the_reference(family, tmp_path):
    folder(tmp_path, family, "AutoModelForSeq2SeqLM")
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    lm = load(tmp_path, "cpu", say=lambda line: None)
    different = set()
    for source in ([5, 41, 9, 44], [30, 4, 12], [33, 20, 8, 25, 12]):
        ends = [7, 19, 40]
        expected = theirs.generate(
            torch.tensor([source]), num_beams=4, num_return_sequences=4, max_new_tokens=6, do_sample=False,
            eos_token_id=ends, pad_token_id=1, length_penalty=1.0, early_stopping=False, forced_eos_token_id=None,
            no_repeat_ngram_size=1, return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
        beam = partial(RefilledBeam, early_stopping=False)
        limits = Limits(6, 64, frozenset(ends), constraints=Constraints(once=1))  # else they repeat one token
        how = {"penalty": HuggingFacePenalty(1.0), "answers": 4, "beam": beam}
        (answers,) = beam_search(lm.model, [source], limits, 4, **how)
        assert [one.score for one in answers] == pytest.approx(expected.sequences_scores.tolist(), abs=1e-4)
        for one, ids in zip(answers, expected.sequences.tolist(), strict=True):
            assert ids[1:][: len(one.ids)] == one.ids
            different.add(tuple(one.ids))
    assert len(different) > 4
