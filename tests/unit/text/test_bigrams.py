"""Character bigrams: what the engine does with the file equals ten lines of Python."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.text.algorithms import bigrams
from orrery.text.tokenizer import Tokenizer

TRAINED = [
    "the theme of the bath, the other bathes\n\n",
    "naïve (the) $a.b* café 東京 the  the",
    "x-y|z ? a+ [b] {c} \\",
]


def two_by_two(text, shortlist):
    """The definition: a word of the shortlist whole, any other two characters at a time, its space with the first."""
    pieces = []
    for word, _ in bigrams.words().pre_tokenize_str(text):
        if word in shortlist:
            pieces.append(word)
            continue
        start = 0
        while start < len(word):
            end = start + (3 if word[start] == " " and start + 1 < len(word) else 2)
            pieces.append(word[start:end])
            start = end
    return pieces


def shortlist_of(tokenizer, texts=TRAINED):
    words = {word for text in texts for word, _ in bigrams.words().pre_tokenize_str(text)}
    return {word for word in words if tokenizer.id(word) is not None}


@pytest.fixture(scope="module", params=[0, 3, 30])
def tokenizer(request):
    pairs = {pair for text in TRAINED for pair in two_by_two(text, ())}
    engine = bigrams.train(iter(TRAINED), 2 + len(pairs) + request.param, "<|endoftext|>")
    return Tokenizer(engine.to_str())


@given(st.text(st.sampled_from("the bathmos,.$*\n東京é?|[\\ "), max_size=40))
def test_the_engine_cuts_as_the_definition_does(tokenizer, text):
    expected = two_by_two(text, shortlist_of(tokenizer))
    known = [piece if tokenizer.id(piece) is not None else "<unk>" for piece in expected]
    assert [tokenizer.token(id) for id in tokenizer.encode(text)] == known


def test_words_that_hold_a_frequent_word_are_cut_all_the_same():
    engine = bigrams.of_words(["the", " the"], ["th", "em", "e", "ba", " ba", "he", "ot", "r"], "<end>")
    tokenizer = Tokenizer(engine.to_str())
    cut = {text: [tokenizer.token(id) for id in tokenizer.encode(text)] for text in ("the the", "them", "bathe")}
    assert cut == {"the the": ["the", " the"], "them": ["th", "em"], "bathe": ["ba", "th", "e"]}


def test_known_text_comes_back_byte_for_byte(tokenizer):
    for text in TRAINED:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.unknown(tokenizer.encode(text)) == 0
    assert tokenizer.decode(tokenizer.encode("QQ")) == "\N{REPLACEMENT CHARACTER}"


def test_the_vocabulary_is_pairs_then_the_most_frequent_words(tokenizer):
    words = shortlist_of(tokenizer) - {pair for text in TRAINED for pair in two_by_two(text, ())}
    if words:
        assert " the" in words
    assert tokenizer.size <= 2 + len({pair for text in TRAINED for pair in two_by_two(text, ())}) + 30
    shuffled = random.Random(0).sample(TRAINED, len(TRAINED))
    again = bigrams.train(iter(shuffled), tokenizer.size, "<|endoftext|>")
    assert json.loads(again.to_str()) == json.loads(json.dumps(tokenizer.definition))


def test_control_tokens_in_a_text_are_cut_like_any_other_word(tokenizer):
    assert tokenizer.special("end") not in tokenizer.encode("the <|endoftext|>")


def test_too_small_a_vocabulary_is_refused():
    with pytest.raises(UsageError, match="pairs of characters of this corpus alone fill"):
        bigrams.train(iter(TRAINED), 20, "<|endoftext|>")


def test_strings_that_break_software_come_back(data_set):
    texts = json.loads(data_set("naughty-strings/blns.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer(bigrams.train(iter(texts), 8000, "<|endoftext|>").to_str())
    shortlist = shortlist_of(tokenizer, texts)
    for text in texts:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert [tokenizer.token(id) for id in tokenizer.encode(text)] == two_by_two(text, shortlist)
