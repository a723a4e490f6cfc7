"""What tokens add to a text, for every kind of tokenizer, and answers that keep to a form because of it."""

import json
import re

import pytest
import tokenizers

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.generation.generate import generate
from orrery.generation.grammar import Form, Formed, TokenVocabulary
from orrery.generation.guides import SpellingIndex, without
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from orrery.text.kinds import TOKENIZERS
from orrery.text.spellings import drops_first_blank, spellings
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer
from tiny_models import randomised

TEXT = "the cat sat on the mat , the dog sat on the log . red and blue ; äöü 日本\n"
SERVED = [kind for kind in TOKENIZERS.names() if kind not in ("wordpiece", "bigram")]


def trained(kind):
    size = {"byte_bpe": 300, "char_bpe": 80, "unigram": 60, "wordpiece": 80, "bigram": 60}.get(kind)
    return train_tokenizer(kind, [TEXT] * 5, size)


def model_of(tokenizer):
    family = load_family("llama")
    config = {**family.TINY, "vocab_size": tokenizer.size, "max_position_embeddings": 64}
    return randomised(family.spec(config).build(0).double().eval())


@pytest.mark.parametrize("kind", SERVED)
def test_spellings_joined_are_the_text(kind):
    tokenizer = trained(kind)
    for text in ("the cat sat on the mat", "red and blue", "the dog ; 日本 äöü"):
        ids = tokenizer.encode(text)
        joined = b"".join(spellings(tokenizer)[id] for id in ids).decode()
        assert joined.removeprefix(" ") == tokenizer.decode(ids) == text
        assert joined == text or drops_first_blank(tokenizer)


@pytest.mark.parametrize("kind", SERVED)
def test_answers_keep_to_a_form_and_others_without_a_word(kind):
    tokenizer = trained(kind)
    model, spelled = model_of(tokenizer), spellings(tokenizer)
    draw = sampler(temperature=1.0, vocabulary=tokenizer.size)
    prompts = [tokenizer.encode(text) for text in ("the", "red and", "sat on the")] * 4
    form = Formed.begin(
        Form(regex="(the|red) (cat|dog|mat)( sat)+ on the (log|mat)"),
        TokenVocabulary(spelled, tokenizer.control, [], drops_first_blank(tokenizer)),
    )
    formed = generate(model, prompts, tokenizer, Limits(40, 60, guides=(form.copy,)), sampler=draw, seed=2)
    whole = [answer.text for answer in formed if answer.finish_reason == "end"]
    assert whole
    for text in whole:
        assert re.fullmatch("(the|red) (cat|dog|mat)( sat)+ on the (log|mat)", text)
    words = ["e", "at", "og ;"]
    limits = Limits(40, 60, guides=(without(words, SpellingIndex(spelled)),))
    free = generate(model, prompts, tokenizer, Limits(40, 60), sampler=draw, seed=2)
    kept = generate(model, prompts, tokenizer, limits, sampler=draw, seed=2)
    assert any(word in answer.text for answer in free for word in words)
    assert not any(word in answer.text for answer in kept for word in words)


@pytest.mark.parametrize("kind", ["wordpiece", "bigram"])
def test_a_kind_whose_tokens_depend_on_their_neighbours_is_refused(kind):
    tokenizer = trained(kind)
    try:
        spelled = spellings(tokenizer)
    except UsageError:
        return
    assert b"".join(spelled[id] for id in tokenizer.encode("the cat")).decode().removeprefix(" ") == "the cat"


ADDED = (
    "café", "đem", "Ärzte", "naïve", "ÿ", "ġhi", "Ġhi", "ķ", "日本", "e\u0301", "🙂", "<|größe|>", "ħ ħ", "plain",
)  # fmt: skip
"""Added tokens whose letters are, or are not, among those that byte-level BPE writes bytes with."""


@pytest.mark.parametrize("word", ADDED)
@pytest.mark.parametrize("special", [False, True])
def test_an_added_token_is_spelled_by_its_own_letters(word: str, special: bool) -> None:
    made = tokenizers.Tokenizer.from_str(json.dumps(dict(trained("byte_bpe").definition)))
    (made.add_special_tokens if special else made.add_tokens)([tokenizers.AddedToken(word, normalized=False)])
    tokenizer = Tokenizer(made.to_str())
    id = tokenizer.id(word)
    ids = [*tokenizer.encode("x"), id, *tokenizer.encode("y")]
    assert tokenizer.decode(ids, special=True) == f"x{word}y"
    assert tokenizer.decode_bytes(ids, special=True).decode() == f"x{word}y"
    assert spellings(tokenizer)[id] == (b"" if special else word.encode())
    stream = StreamDecoder(tokenizer)
    streamed = "".join([*map(stream.push, ids), stream.finish()])
    assert streamed == tokenizer.decode(ids) == ("xy" if special else f"x{word}y")
    if not special:
        assert tokenizer.decode(tokenizer.encode(f"x{word}y")) == f"x{word}y"
