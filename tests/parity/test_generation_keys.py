"""What the files of a model say of writing is done as transformers does it, from either file, one key at a time."""

import json
from dataclasses import replace

import pytest
import torch
import transformers

from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family
from orrery.generation.constraints import Constraints, Place
from orrery.language_model.generate import _longest
from orrery.language_model.load import load
from tests.parity import oracle
from tests.tiny_models import TOKENIZER

FAMILIES = {"bart": transformers.BartForConditionalGeneration, "gpt2": transformers.GPT2LMHeadModel}
TEXT = "the cat sat on"


def model(family, folder, **keys):
    """Save a random reference with these keys in its config.json alone, and return both models."""
    tiny = {**load_family(family).TINY, "vocab_size": TOKENIZER.size, "bos_token_id": 5, "eos_token_id": 7}
    theirs = FAMILIES[family](FAMILIES[family].config_class(**tiny, pad_token_id=6))
    oracle.randomise(theirs, 0)
    theirs.save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "forced_eos_token_id": None, **keys}))
    TOKENIZER.save(folder)
    theirs = FAMILIES[family].from_pretrained(folder, attn_implementation="eager").double().eval()
    return theirs, load(folder, dtype="float64")


def written(theirs, **call):
    """Return what the reference writes behind its beginning."""
    ids = TOKENIZER.encode(TEXT)
    row = theirs.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), **call)[0].tolist()
    begun = 1 if theirs.config.is_encoder_decoder else len(ids)
    return row[begun:]


KEYS = {
    "forced_eos_token_id": 9,
    "forced_bos_token_id": 11,
    "min_length": 14,
    "min_new_tokens": 8,
    "no_repeat_ngram_size": 2,
    "repetition_penalty": 3.0,
    "suppress_tokens": list(range(100, 200)),
    "begin_suppress_tokens": list(range(0, 150)),
    "bad_words_ids": [[i] for i in range(50, 290, 2)] + [[51, 53], [53, 51]],
    "max_length": 11,
    "max_new_tokens": 4,
    "force_bos_token_to_be_generated": True,
    "eos_token_id": list(range(60, 90)),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_an_old_configuration_means_what_it_means_to_the_reference(family, key, tmp_path):
    length = {} if key in ("max_length", "max_new_tokens") else {"max_length": 18}
    theirs, ours = model(family, tmp_path, **length, **{key: KEYS[key]})
    expected = written(theirs)
    found = ours.generations([TEXT], max_new_tokens=_longest(ours._stored, TEXT))[0].ids
    assert found == expected
    assert ours.generate(TEXT) == ours.generations([TEXT], max_new_tokens=len(expected))[0].text


def test_a_saved_model_keeps_what_its_old_configuration_said(tmp_path):
    _, ours = model("bart", tmp_path, forced_eos_token_id=9, max_length=12)
    ours.save(tmp_path / "again")
    said = json.loads((tmp_path / "again" / "generation_config.json").read_text())
    assert said["forced_eos_token_id"] == 9
    assert said["max_length"] == 12
    assert said["eos_token_id"] == 7
    assert load(tmp_path / "again", dtype="float64").generate(TEXT) == ours.generate(TEXT)


def test_generation_config_json_alone_counts_where_there_is_one(tmp_path):
    _, ours = model("gpt2", tmp_path, max_length=12)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": 7, "max_new_tokens": 3}))
    assert len(TOKENIZER.encode(TEXT)) + 3 != 12
    assert load(tmp_path).generate(TEXT) == ours.generate(TEXT, max_new_tokens=3)
    assert ours.generate(TEXT, max_new_tokens=2) == load(tmp_path).generate(TEXT, max_new_tokens=2)


def test_beams_and_draws_of_the_files_are_the_default(tmp_path):
    _, ours = model("bart", tmp_path, num_beams=3, length_penalty=0.0, max_length=10)
    assert ours.generate(TEXT) == ours.search([TEXT], num_beams=3, length_penalty=0, max_new_tokens=9)[0][0].text
    assert ours.generate(TEXT, num_beams=1) == ours.generations([TEXT], max_new_tokens=9)[0].text
    _, ours = model("gpt2", tmp_path, do_sample=True, temperature=0.7, top_k=5, max_length=20)
    drawn = {"temperature": 0.7, "top_k": 5, "max_new_tokens": 20 - len(TOKENIZER.encode(TEXT))}
    assert ours.generate(TEXT) == ours.generate(TEXT, **drawn) != ours.generate(TEXT, temperature=0)


def test_beams_obey_the_constraints(tmp_path):
    _, ours = model("bart", tmp_path, forced_bos_token_id=11, forced_eos_token_id=9, no_repeat_ngram_size=1)
    for found in ours.search(["the cat", "a log"], num_beams=4, answers=4, max_new_tokens=8):
        for one in found:
            ids = one.hypothesis.ids
            assert ids[0] == 11
            assert len(set(ids)) == len(ids)
            assert len(ids) < 8 or ids[-1] == 9


@pytest.mark.parametrize(
    ("key", "value"),
    [("encoder_no_repeat_ngram_size", 3), ("max_length", "long"), ("num_beams", True), ("bad_words_ids", 3)],
)
def test_what_cannot_be_done_is_refused_by_name(key, value, tmp_path):
    _, ours = model("bart", tmp_path, max_length=12)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(ModelFileError, match=key):
        load(tmp_path).generate(TEXT)
    assert ours.generate(TEXT)


def test_a_penalty_of_repetitions_is_refused_beside_beams(tmp_path):
    _, ours = model("bart", tmp_path, repetition_penalty=2.0)
    with pytest.raises(UsageError, match="repetition_penalty"):
        ours.search([TEXT])


def test_constraints_hide_and_demand():
    scores, place = torch.zeros(1, 6), Place([1], [2, 3, 2], 5)
    demand = Constraints(frozenset([5]), last=(4,), least_row=9, never=(0,), phrases=((3, 2, 1),), once=2)
    hidden = demand(scores, [place]).isinf()[0].tolist()
    assert hidden == [True, True, False, True, False, True]
    forced = demand(scores, [replace(place, answer=[2, 3, 2, 2])])[0]
    assert forced.argmax() == 4
    assert forced.isinf().sum() == 5
    assert Constraints(frozenset([5]))(scores, [place]) is scores
