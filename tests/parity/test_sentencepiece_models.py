"""Models that SentencePiece trains itself are read exactly: ids, ends and texts are the library's."""

import io
import random

import pytest
import sentencepiece

from orrery.text import Tokenizer, load_tokenizer
from orrery.text.sentencepiece.export import definition

SYMBOLS = ["<sep>", "the", "==", "\u6771\u4eac", "\uff21", "th"]
LINES = [
    f"{word} the naïve {number} == {number * 111}" for number, word in enumerate(["been", "Bean", "\u6771\u4eac"] * 40)
]
SPELT = ["<s>", "</s>", "<unk>", "<0x41>", "<sep", *SYMBOLS]
MARKS = (
    "\u2581\t\n\u3000\u00a0\u200b\u200d\u0301\u0323\u0327\u00ad\r\0\x7f\ufeff\ufb01\u2163\uff76\uff9e\u0130\u03c2\ufdfa"
)
RANGES = [(0x20, 0x3000), (0x1100, 0x1200), (0xAC00, 0xD7A4), (0xE000, 0x110000)]
SETTINGS = [
    {"normalization_rule_name": "nmt_nfkc"},
    {"normalization_rule_name": "nmt_nfkc", "byte_fallback": True, "add_dummy_prefix": False},
    {"normalization_rule_name": "nfkc", "user_defined_symbols": SYMBOLS, "split_by_whitespace": False},
    {"normalization_rule_name": "nmt_nfkc_cf", "user_defined_symbols": SYMBOLS, "byte_fallback": True},
    {"normalization_rule_name": "nfkc_cf", "remove_extra_whitespaces": False},
    {
        "normalization_rule_name": "identity",
        "user_defined_symbols": SYMBOLS,
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
    },
]


def train(kind, settings, lines=LINES):
    """Return the library's processor of a small model, and ours."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=made,
        vocab_size=100 + 256 * settings.get("byte_fallback", False),
        model_type=kind,
        hard_vocab_limit=False,
        character_coverage=0.99,
        minloglevel=3,
        **settings,
    )
    content = made.getvalue()
    return sentencepiece.SentencePieceProcessor(model_proto=content), Tokenizer(definition(content))


def random_text(some):
    """Return common signs, marks, spelt pieces and any characters at all, mixed."""

    def part():
        anything = chr(some.randrange(*some.choice(RANGES)))
        return some.choice([some.choice("abe th=61 "), " ", some.choice(MARKS), some.choice(SPELT), anything])

    return "".join(part() for _ in range(some.randrange(30)))


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["normalization_rule_name"])
def test_ids_ends_and_texts_are_those_of_the_library(kind, settings):
    library, tokenizer = train(kind, settings)
    some = random.Random(7)
    texts = ["", " ", "\u2581", "a" * 40 + "=" * 19, *LINES[:20], *(random_text(some) for _ in range(150))]
    for text in texts:
        encoded = library.encode(text, return_type="offset_mapping")
        ids, ends = tokenizer.encode_with_ends(text)
        assert ids == tokenizer.encode(text) == encoded["ids"], text
        assert settings.get("byte_fallback") or ends == [end for _, end in encoded["offsets"]], text
        assert tokenizer.decode(ids) == library.decode(ids), text


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_any_ids_are_decoded_as_the_library_does(kind):
    library, tokenizer = train(kind, SETTINGS[3])
    some = random.Random(8)
    for _ in range(300):
        ids = [some.randrange(len(library)) for _ in range(9)]
        assert tokenizer.decode(ids) == library.decode(ids)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_model", "test_ja_model"])
def test_a_book_in_one_line_is_cut_as_by_the_library(data_set, name):
    """So long a line that the library takes its sums off again, lest float32 loses what pieces add."""
    file = data_set(f"tokenizer-reference/sentencepiece/{name}.model")
    text = data_set("tokenizer-reference/sentencepiece/botchan.txt").read_text(encoding="utf-8")
    library = sentencepiece.SentencePieceProcessor(model_file=str(file))
    assert load_tokenizer(file).encode(text) == library.encode(text)
