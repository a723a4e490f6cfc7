"""The steps that are shown end in what the engine does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.text.algorithms.steps import TakenPiece, longest_matches
from orrery.text.stages import Stages, surfaces
from orrery.text.tokenizer import load_tokenizer
from orrery.text.train import train_tokenizer

TEXTS = ["the theme of the bath, the other bathes\n", "giving lectures on transformers, naïve 東京"] * 3
ALPHABET = st.text(st.sampled_from("thebas ,ï東Q"), max_size=20)


@pytest.fixture(scope="module")
def trained():
    return {kind: train_tokenizer(kind, TEXTS, size) for kind, size in [("wordpiece", 80), ("unigram", 60)]}


@given(ALPHABET)
def test_longest_matches_are_the_engines(trained, text):
    tokenizer = trained["wordpiece"]
    steps = [longest_matches(tokenizer.definition, word) for word in Stages(tokenizer).words(text)]
    # The engine keeps no piece of a word whose end is unknown.
    taken = [["[UNK]"] if word[-1].piece == "[UNK]" else [step.piece for step in word] for word in steps]
    assert [tokenizer.token(id) for id in tokenizer.encode(text)] == [piece for word in taken for piece in word]


def test_what_did_not_fit_is_named():
    definition = {
        "model": {
            "vocab": {"[UNK]": 0, "giv": 1, "##in": 2, "##i": 3},
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 10,
        }
    }
    assert longest_matches(definition, "givin") == [TakenPiece("giv", ("givin", "givi")), TakenPiece("##in", ())]
    assert longest_matches(definition, "give")[-1] == TakenPiece("[UNK]", ("##e",))
    assert longest_matches(definition, "giv" + "in" * 4) == [TakenPiece("[UNK]", ())]


@given(ALPHABET)
def test_surfaces_spell_the_text_without_what_is_dropped(trained, text):
    for tokenizer in trained.values():
        parts = surfaces(tokenizer, text)
        assert [id for id, _ in parts] == tokenizer.encode(text)
        assert "".join(part for _, part in parts).replace(" ", "") == text.replace(" ", "")
    assert "".join(part for _, part in surfaces(trained["unigram"], text)) == text


def test_normalisation_is_shown_as_the_tokenizer_does_it(data_set):
    stages = Stages(load_tokenizer(data_set("tokenizer-reference/bert-base-uncased")))
    assert stages.normalise("Naïve") == "naive"
    assert stages.words("Naïve lectrue") == ["naive", "lectrue"]
