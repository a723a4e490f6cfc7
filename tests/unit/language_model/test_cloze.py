"""The probability of a candidate equals what transformers' logits give by hand, in float64."""

import math

import pytest
import torch
import transformers
from tests.parity import oracle
from tests.parity.pipelines import folder

import orrery
from orrery.errors import DataError, UsageError

CANDIDATES = ["an apple", "London", "日本", "the unbelievable engine"]
TEXTS = ["Ada was eating __.", "__ sat on the mat", "near __", "The cat__ wrote to Charles"]


def models(place, kind, auto):
    folder(place, kind, auto, context=96)
    config = transformers.AutoConfig.from_pretrained(place)
    with oracle.widened(oracle.modelling(kind)):
        theirs = getattr(transformers, auto).from_pretrained(place, config=config, attn_implementation="eager")
    return theirs.double().eval(), orrery.load(place, "cpu", "float64", say=str)


def log_probs(theirs, kind, ids, place):
    with torch.no_grad(), oracle.widened(oracle.modelling(kind)):
        return theirs(torch.tensor([ids])).logits[0, place].double().log_softmax(-1)


def places(tokenizer, text, candidate):
    """Return ids, and the numbers of the tokens with a letter of the candidate, from the library's own offsets."""
    whole = text.replace("__", candidate)
    encoded = tokenizer(whole, return_offsets_mapping=True, add_special_tokens=False)
    start = text.index("__")
    end = start + len(candidate)
    return encoded["input_ids"], [n for n, (a, b) in enumerate(encoded["offset_mapping"]) if a < end and b > start]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("both_sides", [True, False])
def test_a_decoder(kind, both_sides, tmp_path):
    theirs, lm = models(tmp_path, kind, "AutoModelForCausalLM")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        by_candidate = {one.candidate: one for one in lm.cloze(text, CANDIDATES, both_sides=both_sides, batch_size=3)}
        for candidate in CANDIDATES:
            read = text if both_sides else text[: text.index("__") + 2]
            ids, inside = places(tokenizer, read, candidate)
            row = [tokenizer.bos_token_id, *ids]
            each = [float(log_probs(theirs, kind, row, n)[id]) for n, id in enumerate(ids)]
            one = by_candidate[candidate]
            assert one.ids == [ids[n] for n in inside]
            assert one.log_probability == pytest.approx(sum(each[n] for n in inside), abs=1e-6)
            assert one.log_probability == pytest.approx(math.fsum(one.log_probabilities), abs=1e-9)
            assert one.rest == pytest.approx(sum(each[inside[-1] + 1 :]), abs=1e-6)
            assert one.score == pytest.approx(one.log_probability + one.rest, abs=1e-9)
            assert one.text == text.replace("__", candidate)
        if both_sides and text.startswith("__"):  # the whole text is then the candidate and the rest
            assert by_candidate["London"].score == pytest.approx(lm.score("London sat on the mat").total, abs=1e-9)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_a_masked_model(kind, tmp_path):
    theirs, lm = models(tmp_path, kind, "AutoModelForMaskedLM")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS[:3]:
        for one in lm.cloze(text, CANDIDATES, batch_size=2):
            ids, inside = places(tokenizer, text, one.candidate)
            total = 0.0
            for n in inside:
                row = [*ids[:n], *[tokenizer.mask_token_id] * (inside[-1] + 1 - n), *ids[inside[-1] + 1 :]]
                framed = [tokenizer.cls_token_id, *row, tokenizer.sep_token_id]
                total += float(log_probs(theirs, kind, framed, n + 1)[ids[n]])
            assert one.log_probability == pytest.approx(total, abs=1e-6)
            assert one.rest == 0
            assert one.score == one.log_probability


def test_candidates_are_ranked_in_total_or_a_token(tmp_path):
    _, lm = models(tmp_path, "gpt2", "AutoModelForCausalLM")
    total, mean = (lm.cloze(TEXTS[0], CANDIDATES, mean=mean) for mean in (False, True))
    assert [one.score for one in total] == sorted((one.score for one in total), reverse=True)
    assert [one.score for one in mean] == sorted((one.score for one in mean), reverse=True)
    behind = len(lm.tokenizer.encode("Ada was eating London.")) - len(lm.tokenizer.encode("Ada was eating London"))
    for one in mean:
        assert one.score == pytest.approx((one.log_probability + one.rest) / (len(one.ids) + behind), abs=1e-9)


def test_what_is_refused(tmp_path):
    _, lm = models(tmp_path / "gpt2", "gpt2", "AutoModelForCausalLM")
    wrong = [("no gap", ["a"]), ("two __ gaps __", ["a"]), ("a __", []), ("a __ " + "Ada wrote " * 99, ["b"])]
    for text, candidates in wrong:
        with pytest.raises(UsageError):
            lm.cloze(text, candidates)
    with pytest.raises(DataError, match="empty"):
        lm.cloze("a __", ["b", " "])
    with pytest.raises(UsageError, match="batch_size"):
        lm.cloze("a __", ["b"], batch_size=0)
    folder(tmp_path / "t5", "t5", "AutoModelForSeq2SeqLM")
    with pytest.raises(UsageError, match="masked head"):
        orrery.load(tmp_path / "t5", "cpu", say=str).cloze("a __", ["b"])
