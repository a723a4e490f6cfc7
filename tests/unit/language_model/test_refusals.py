"""What a language model refuses: the class of the error, what is wrong, and what to do."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import tokenizers

import refusals
from orrery.errors import DataError, ModelFileError, RunError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import refuse_no_number
from orrery.families import load_family
from orrery.language_model import written
from orrery.language_model.cloze import _cut
from orrery.language_model.likelihoods import beginning
from orrery.language_model.model import LanguageModel
from orrery.text.special import framed_tokenizer
from orrery.text.tokenizer import Tokenizer
from stand_ins import stand_in
from tiny_models import TOKENIZER, randomised

FRAMED = {"bert": "bert", "t5": "t5"}
"""Which families put tokens around their texts, and how."""


def made(family, tokenizer):
    rules = load_family(family)
    sized = {"vocab_size": tokenizer.size} if "vocab_size" in rules.TINY else {}
    model = randomised(rules.spec({**rules.TINY, **sized}).build(0).eval())
    return LanguageModel(Stored(Path("tiny"), model, tokenizer=tokenizer))


def letters():
    """Return a tokenizer without a token that begins or ends a text."""
    words = tokenizers.models.WordLevel({letter: id for id, letter in enumerate("abcz")}, unk_token="z")
    library = tokenizers.Tokenizer(words)
    library.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    return Tokenizer(library.to_str())


@pytest.fixture(scope="module")
def models():
    """One model of each kind, a decoder whose tokenizer knows only letters, and one that spells as t5."""
    kinds = {family: framed_tokenizer(TOKENIZER, FRAMED[family]) for family in FRAMED}
    kinds |= {"gpt2": TOKENIZER, "vit": TOKENIZER}
    by_family = {family: made(family, tokenizer) for family, tokenizer in kinds.items()}
    return SimpleNamespace(**by_family, letters=made("gpt2", letters()), same=made("gpt2", kinds["t5"]))


REFUSED = {
    "stop": (lambda m: m.gpt2.generate("a", stop=3), UsageError, "stop=3 is neither a text nor a list", "give stop="),
    "stops": (lambda m: m.gpt2.generate("a", stop=["b", 3]), UsageError, "neither a text nor a list", "give stop="),
    "a number": (lambda m: m.gpt2.vectors([3]), UsageError, "a int is neither a text nor a row", "give one of them"),
    "no ids": (lambda m: m.gpt2.embed([[1.5]]), UsageError, "a list is neither a text nor a row", "give one of them"),
    "no whole ids": (lambda m: m.gpt2.score([1.5, 2.0]), UsageError, "a list is neither", "give one of them"),
    "empty": (lambda m: m.letters.generate(""), UsageError, "the text is empty", "at least one character"),
    "empty and written": (
        lambda m: written.beginning(m.letters.stored), UsageError, "the text is empty", "at least one character",
    ),
    "nothing before": (
        lambda m: beginning(m.letters.stored), UsageError, "neither a start nor an end token", "each text a context",
    ),
    "nothing before the gap": (
        lambda m: m.letters.cloze("__ab", ["c"]), UsageError, "nothing stands before the gap", "begin with a word",
    ),
    "a candidate without a token": (
        lambda m: _cut(silent(), "a", "b", "c"), DataError, "the candidate 'b' has no token", "cannot spell it",
    ),
    "a number for a text": (
        lambda m: m.letters.generations([1.5]), UsageError, "neither a text nor a row of ids", "[[1, 2, 3]]",
    ),
    "a row of texts for ids": (
        lambda m: m.letters.search([["a", "b"]]), UsageError, "neither a text nor a row of ids", '["a text"]',
    ),
    "an encoder that writes": (
        lambda m: m.bert.generate("a"), UsageError, "an encoder reads whole rows and writes nothing", "load a decoder",
    ),
    "an encoder that scores": (lambda m: m.bert.score("a"), UsageError, "only a decoder gives each token", "a decoder"),
    "a reader that scores": (lambda m: m.t5.score("a"), UsageError, "only a decoder gives each token", "a decoder"),
    "too long by its start": (
        lambda m: m.gpt2.score("z" * m.gpt2.context), UsageError, "longer than this model's context", "shorten it",
    ),
    "a source that is too long": (
        lambda m: m.t5.generate("z" * m.t5.context), UsageError, "longer than this model's context", "shorten it",
    ),
    "no targets": (
        lambda m: m.t5.logits([[1, 2]]), UsageError, "predicts targets, and there are none", "every row begins with ",
    ),
    "targets of a decoder": (
        lambda m: m.gpt2.logits([[1]], None, [[1]]), UsageError, "no encoder and decoder", "without decoder_input_ids",
    ),
    "images": (lambda m: m.vit.logits([[1]]), UsageError, "reads images, not tokens", "give it an image"),
    "a layout": (lambda m: m.gpt2.save("nowhere", layout="gguf"), UsageError, "no layout 'gguf'", "use hf or own"),
    "no family": (
        lambda m: m.gpt2.save("nowhere"), UsageError, "does not say which family", "layout='own'",
    ),
    "more answers than beams": (
        lambda m: m.gpt2.search(["a"], num_beams=2, num_beam_groups=2, answers=3), UsageError, "3 answers of 2 beams",
        "no more answers than beams",
    ),
    "groups that cover": (
        lambda m: m.gpt2.search(["a"], num_beam_groups=2, coverage_penalty=0.2), UsageError,
        "groups of beams have no coverage penalty", "give one of the two",
    ),
    "a draft that reads otherwise": (
        lambda m: m.same.speculate("a", m.t5), UsageError, "cannot guess for each other", "take lookup",
    ),
    "a draft of other tokens": (
        lambda m: m.gpt2.speculate("a", m.letters), UsageError, "another tokenizer", "the same vocabulary, or lookup",
    ),
    "a penalty beside contrast": (
        lambda m: LanguageModel(with_penalty(m.gpt2)).contrastive_search("a"), UsageError,
        "repetition_penalty, which contrastive search does not know", "remove it there, or draw tokens",
    ),
    "numbers that overflow": (
        lambda m: refuse_no_number(m.gpt2.stored, float("inf")), RunError, "gives inf though each of its weights",
        'try `dtype="float32"`',
    ),
    "settings of a task": (
        lambda m: written.task_keys(stand_in(Stored, config={"task_specific_params": {"x": 3}}), "x"), ModelFileError,
        "task_specific_params of x is no mapping", "correct config.json",
    ),
}  # fmt: skip


def silent():
    """Return a model whose tokenizer gives no token to any letter."""
    return stand_in(Stored, tokenizer=SimpleNamespace(spans=lambda text: []), folder=Path("tiny"))


def with_penalty(lm):
    """Return the same model with files that ask for a penalty of repetitions."""
    return replace(lm.stored, generation={"repetition_penalty": 1.3})


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_by_name_with_what_to_do(models, case):
    refusals.check(REFUSED[case], models)
