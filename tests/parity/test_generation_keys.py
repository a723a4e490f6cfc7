"""What the files of a model say of writing is done as transformers does it, from either file, one key at a time."""

import json
from dataclasses import replace

import pytest
import torch
import transformers

from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family
from orrery.families._generation_keys import FOLLOWED, REFUSED, WITHOUT_EFFECT
from orrery.generation.constraints import Constraints, TokenPlace
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
    ids = ours.generations([TEXT], max_new_tokens=_longest(ours.stored, TEXT))[0].ids
    assert ids == expected
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
    for answers in ours.search(["the cat", "a log"], num_beams=4, answers=4, max_new_tokens=8):
        for one in answers:
            ids = one.hypothesis.ids
            assert ids[0] == 11
            assert len(set(ids)) == len(ids)
            assert len(ids) < 8 or ids[-1] == 9


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("encoder_no_repeat_ngram_size", 3),
        ("max_length", "long"),
        ("num_beams", True),
        ("bad_words_ids", 3),
        ("repetition_penalty", 0),
        ("repetition_penalty", -1.5),
        ("stop_strings", [3]),
        ("stop_strings", [""]),
        ("stop_strings", ""),
        ("num_beam_groups", 2),
        ("epsilon_cutoff", 0.2),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(key, value, tmp_path):
    _, ours = model("bart", tmp_path, max_length=12)
    config = json.loads((tmp_path / "config.json").read_text())
    drawn = {"do_sample": True} if key == "epsilon_cutoff" else {}
    (tmp_path / "config.json").write_text(json.dumps({**config, **drawn, key: value}))
    with pytest.raises(ModelFileError, match=key):
        load(tmp_path).generate(TEXT)
    with pytest.raises(ModelFileError, match=key):
        load(tmp_path).search([TEXT])
    assert ours.generate(TEXT)


BESIDE_BEAMS = [
    {"repetition_penalty": 2.0},
    {"repetition_penalty": 0.6},
    {"length_penalty": -1.0},
    {"length_penalty": -3.5, "early_stopping": "never"},
    {"length_penalty": 2.0, "repetition_penalty": 1.5, "early_stopping": True},
    {"repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "min_length": 9},
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("said", BESIDE_BEAMS, ids=str)
def test_penalties_beside_beams_are_the_references(family, said, tmp_path):
    theirs, ours = model(family, tmp_path, num_beams=4, max_length=16, **said)
    ids = TOKENIZER.encode(TEXT)
    assert ours.write([ids])[0][0] == written(theirs)
    if "early_stopping" not in said and family == "gpt2" and "repetition_penalty" in said:
        plain = ours.search([TEXT], num_beams=4, max_new_tokens=6)[0][0].text
        penalty = said["repetition_penalty"]
        assert ours.search([TEXT], num_beams=4, max_new_tokens=6, repetition_penalty=penalty)[0][0].text == plain
    with pytest.raises(UsageError, match="repetition_penalty"):
        ours.search([TEXT], repetition_penalty=0)


DETERMINED = {
    "do_sample": {"do_sample": True, "top_k": 1},
    "temperature": {"do_sample": True, "temperature": 1e-5},
    "top_k": {"do_sample": True, "top_k": 1},
    "top_p": {"do_sample": True, "top_p": 1e-9},
    "min_p": {"do_sample": True, "min_p": 1.0},
    "typical_p": {"do_sample": True, "typical_p": 1e-9},
    "num_beams": {"num_beams": 3},
    "length_penalty": {"num_beams": 3, "length_penalty": 3.0},
    "early_stopping": {"num_beams": 3, "early_stopping": True},
    "num_return_sequences": {"num_beams": 3, "num_return_sequences": 2},
    "stop_strings": {"stop_strings": ["a", " o"]},
    "bos_token_id": {"bos_token_id": 9},
    "pad_token_id": {"pad_token_id": 9},
    "decoder_start_token_id": {"decoder_start_token_id": 9},
    **{key: {key: KEYS[key]} for key in KEYS if key not in ("force_bos_token_to_be_generated",)},
}
"""A file for each key that is followed: drawn so that only one answer can be drawn."""


def test_every_key_of_the_reference_has_its_place():
    known = set(transformers.GenerationConfig().__dict__)
    places = [FOLLOWED, set(WITHOUT_EFFECT), REFUSED]
    assert known == set.union(*map(set, places))
    assert sum(map(len, places)) == len(known)
    assert set(DETERMINED) == FOLLOWED


def with_file(theirs, folder, **said):
    """Return what both write with these keys in a generation_config.json."""
    whole = {"eos_token_id": 7, "pad_token_id": 6, "bos_token_id": 5, "max_length": 18, **said}
    if "max_new_tokens" in whole:
        del whole["max_length"]
    (folder / "generation_config.json").write_text(json.dumps(whole))
    theirs.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    ids = TOKENIZER.encode(TEXT)
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    rows = theirs.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), tokenizer=wrapped).tolist()
    theirs_written = [row[len(ids) :] for row in rows]
    for row in theirs_written:
        while len(theirs_written) > 1 and row[-1] == whole["pad_token_id"]:  # the shorter of several
            row.pop()
    return theirs_written, load(folder, dtype="float64", say=lambda line: None).write([ids])[0]


@pytest.mark.parametrize("key", DETERMINED)
def test_a_key_that_is_followed_means_what_it_means_to_the_reference(key, tmp_path):
    theirs, _ = model("gpt2", tmp_path)
    theirs_written, written = with_file(theirs, tmp_path, **DETERMINED[key])
    assert written == theirs_written


VALUES = {
    "cache_implementation": "static", "cache_config": None, "compile_config": None, "speculation_type": None,
    "continuous_batching_config": None, "transformers_version": "5.0", "num_assistant_tokens_schedule": "constant",
    "prefill_chunk_size": 2, "use_cache": False, "_from_model_config": True, "use_mtp": False, "is_assistant": False,
    "prompt_lookup_num_tokens": 3, "max_matching_ngram_size": 2, "assistant_early_exit": None,
}  # fmt: skip
"""What a key is given where another number than 1 makes more sense, or only another program could serve it."""


@pytest.mark.parametrize("key", WITHOUT_EFFECT)
def test_a_key_without_effect_has_none(key, tmp_path):
    theirs, _ = model("gpt2", tmp_path)
    plain, written = with_file(theirs, tmp_path)
    assert written == plain
    given = VALUES.get(key, key.startswith(("output", "return", "remove", "low", "disable")) or 1)
    if key not in ("return_dict_in_generate", "cache_implementation", "prompt_lookup_num_tokens", "diversity_penalty"):
        theirs_with, _ = with_file(theirs, tmp_path, **{key: given})
        assert theirs_with == plain
    said = {"eos_token_id": 7, "max_length": 18, key: given}
    (tmp_path / "generation_config.json").write_text(json.dumps(said))
    assert load(tmp_path, dtype="float64", say=lambda line: None).write([TOKENIZER.encode(TEXT)])[0] == plain


ASKING = {
    "exponential_decay_length_penalty": [3, 1.2], "sequence_bias": [[[3], 2.0]], "constraints": [{"a": 1}],
    "force_words_ids": [[3]], "dola_layers": "high", "watermarking_config": {"bias": 2.0}, "token_healing": True,
    "renormalize_logits": True, "top_h": 0.5, "epsilon_cutoff": 0.1, "eta_cutoff": 0.1,
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_a_key_that_is_not_built_is_refused_by_name(key, tmp_path):
    model("gpt2", tmp_path)
    said = {"eos_token_id": 7, "max_length": 18, key: ASKING.get(key, 3)}
    if key in ("top_h", "epsilon_cutoff", "eta_cutoff", "renormalize_logits"):
        (tmp_path / "generation_config.json").write_text(json.dumps(said))
        assert load(tmp_path, say=lambda line: None).write([[1, 2]])  # without draws and beams it asks for nothing
        said |= {"num_beams": 2} if key == "renormalize_logits" else {"do_sample": True}
    (tmp_path / "generation_config.json").write_text(json.dumps(said))
    refused = load(tmp_path, say=lambda line: None)
    for door in (lambda: refused.write([[1, 2]]), lambda: refused.generate("the"), lambda: refused.search(["the"])):
        with pytest.raises(ModelFileError, match=key):
            door()
    (tmp_path / "generation_config.json").write_text(json.dumps({**said, key: None}))
    assert load(tmp_path, say=lambda line: None).generate("the") is not None


def test_constraints_hide_and_demand():
    scores, place = torch.zeros(1, 6), TokenPlace([1], [2, 3, 2], 5)
    demand = Constraints(frozenset([5]), last=(4,), least_row=9, never=(0,), phrases=((3, 2, 1),), once=2)
    hidden = demand(scores, [place]).isinf()[0].tolist()
    assert hidden == [True, True, False, True, False, True]
    forced = demand(scores, [replace(place, answer=[2, 3, 2, 2])])[0]
    assert forced.argmax() == 4
    assert forced.isinf().sum() == 5
    assert Constraints(frozenset([5]))(scores, [place]) is scores
