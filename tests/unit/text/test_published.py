import json
import random
import struct

import numpy as np
import pytest

from orrery.errors import ModelFileError
from orrery.text import charsmap, load_tokenizer

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
GPT2 = {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5, "<|endoftext|>": 6}
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "e"]
CONTROLS = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
PIECES = [*CONTROLS, (SPACE, -3.0, 1), ("a", -2.0, 1), ("b", -2.0, 1), (SPACE + "ab", -4.0, 1), ("ab", -4.5, 1)]
MERGED = [*CONTROLS, *((character, -9.0, 1) for character in SPACE + "abc"), ("ab", -1.0, 1), ("bc", -2.0, 1)]


def varint(number):
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def message(values):
    return b"".join(field(number, value) for number, value in values)


def model(pieces=PIECES, training=(), normal=()):
    parts = [(1, message(enumerate(piece, 1))) for piece in pieces]
    return message([*parts, (2, message(training)), (3, message(normal))])


def trie(rules):
    """Compile rules whose keys are one or two ASCII letters: every node has a block of 256 of its own."""
    nodes = sorted({key[:end] for key in rules for end in range(len(key) + 1)})
    block = {key: 256 * (place + 1) for place, key in enumerate(nodes)}
    units, texts = np.zeros(256 * (len(nodes) + 1), "<u4"), b""
    for key in nodes:
        at = block[key[:-1]] ^ ord(key[-1]) if key else 0
        units[at] = (at ^ block[key]) << 10 | (ord(key[-1]) if key else 0) | (1 << 8 if key in rules else 0)
        if key in rules:
            units[block[key]] = 1 << 31 | len(texts)
            texts += rules[key].encode() + b"\0"
    return struct.pack("<I", units.nbytes) + units.tobytes() + texts


@pytest.fixture
def load(tmp_path):
    def write(name, content, **others):
        for other, text in others.items():
            (tmp_path / other.replace("_txt", ".txt")).write_text(text, encoding="utf-8")
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_tokenizer(tmp_path / name)

    return write


def test_gpt2_merges_in_order_and_keeps_control_tokens_apart(load):
    tokenizer = load("vocab.json", json.dumps(GPT2), merges_txt="#version: 0.2\na b\nab c\n")
    assert tokenizer.encode("abc ab") == [4, 5, 3]
    assert tokenizer.decode([4, 5, 3]) == "abc ab"
    assert tokenizer.special("end") == 6
    assert tokenizer.encode("a<|endoftext|>", special=True) == [0, 6]
    assert 6 not in tokenizer.encode("a<|endoftext|>")


@pytest.mark.parametrize(
    ("vocabulary", "merges", "message"),
    [
        (json.dumps(GPT2), None, "merges.txt is missing beside it"),
        (json.dumps(GPT2), "a b\nb c\n", "line 2: 'bc' is not in the vocabulary"),
        (json.dumps(GPT2), "ab\n", "line 1: '' is not in the vocabulary"),
        ('{"a": 0, "b": 1, "a": 2}', "", "the piece 'a' twice"),
        ('{"a": "0"}', "", "no object from pieces to ids"),
        ('{"a": 0, "b": 0}', "", "gives two pieces one id"),
        ("[", "", "not JSON"),
    ],
)
def test_damaged_gpt2_files_are_refused(load, vocabulary, merges, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        load("vocab.json", vocabulary, **({} if merges is None else {"merges_txt": merges}))
    assert caught.value.hint


def test_bert_lowers_case_unless_pieces_have_capitals_or_the_configuration_says_no(load, tmp_path):
    uncased = load("vocab.txt", "\n".join(BERT) + "\n")
    assert uncased.encode("The CATS é") == [5, 6, 7, 8]
    assert uncased.encode("[MASK] x")[-1] == uncased.special("unknown")
    assert uncased.encode("cats[MASK]", special=True) == [6, 7, 4]
    assert 4 not in uncased.encode("cats[MASK]")
    cased = load("vocab.txt", "\n".join([*BERT, "The"]))
    assert cased.encode("The the THE") == [9, 5, 1]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert load("vocab.txt", "\n".join(BERT)).encode("the The") == [5, 1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*BERT, "cat"], "line 7 is 'cat', which comes again"),
        ([*BERT, "", "dog"], "line 10 is empty"),
        (["the"], r"no line is \[UNK\]"),
    ],
)
def test_damaged_bert_lists_are_refused(load, lines, message):
    with pytest.raises(ModelFileError, match=message):
        load("vocab.txt", "\n".join(lines))


def test_unigram_takes_the_likeliest_pieces_and_no_control_token_of_the_text(load):
    tokenizer = load("tiny.model", model())
    assert tokenizer.encode("ab  b ") == [6, 3, 5]
    assert tokenizer.encode("azzb") == [3, 4, 0, 5]
    assert tokenizer.decode(tokenizer.encode("ab b")) == "ab b"
    assert not tokenizer.control & set(tokenizer.encode("a<s></s>b"))
    assert tokenizer.encode("<s>", special=True) == [1]
    assert load("tiny.model", model(normal=[(3, 0), (4, 0)])).encode("ab  ") == [4, 5, 3, 3]
    assert tokenizer.encode("") == tokenizer.encode("  ") == []


def test_bytes_stand_for_unknown_characters(load):
    pieces = [*PIECES, *((f"<0x{byte:02X}>", 0.0, 6) for byte in range(256))]
    for kind in (1, 2):
        tokenizer = load("tiny.model", model(pieces, training=[(3, kind)]))
        first = len(PIECES)
        assert tokenizer.encode("bé") == [3, 5, first + 0xC3, first + 0xA9]
        assert tokenizer.decode(tokenizer.encode("bé 東")) == "bé 東"
        assert first + 0x41 not in tokenizer.encode("<0x41>")


def test_user_defined_pieces_win_inside_words(load):
    pieces = [*PIECES, ("bab", 0.0, 4), ("<sep>", 0.0, 4)]
    tokenizer = load("tiny.model", model(pieces))
    assert tokenizer.encode("ababa") == [3, 4, 8, 4]
    assert tokenizer.encode("a<sep>b <sep>") == [3, 4, 9, 5, 3, 9]
    assert tokenizer.decode(tokenizer.encode("a<sep>bab")) == "a<sep>bab"
    assert not tokenizer.control & {8, 9}


def test_user_defined_pieces_are_those_of_the_library(tmp_path, data_set):
    import sentencepiece as library

    symbols = ["<sep>", "the", "==", "\u6771\u4eac"]
    text = data_set("tiny-shakespeare/input.txt").read_text(encoding="utf-8")[:60_000]
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    library.SentencePieceTrainer.train(
        input=str(tmp_path / "text.txt"),
        model_prefix=str(tmp_path / "made"),
        vocab_size=300,
        normalization_rule_name="identity",
        user_defined_symbols=symbols,
        minloglevel=2,
    )
    reference = library.SentencePieceProcessor(model_file=str(tmp_path / "made.model"))
    tokenizer = load_tokenizer(tmp_path / "made.model")
    some = random.Random(
        5
    )  # no lone "=": "===" would be a tie between two ways, which the reference breaks by rounding
    texts = text.split("\n")[:300]
    texts += ["".join(some.choices([*symbols, "other", "e", " ", "<", "\u6771", "x"], k=12)) for _ in range(300)]
    assert [tokenizer.encode(one) for one in texts] == [reference.encode(one) for one in texts]
    assert [tokenizer.decode(tokenizer.encode(one)) for one in texts] == [
        reference.decode(reference.encode(one)) for one in texts
    ]


def test_bpe_merges_by_score(load):
    tokenizer = load("tiny.model", model(MERGED, training=[(3, 2)]))
    assert [tokenizer.token(id) for id in tokenizer.encode("abc bc")] == [SPACE, "ab", "c", SPACE, "bc"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model() + field(9, b"abc")[:-1], "after its message"),
        (model() + b"\xff", "does not end"),
        (b"\x0b", "unknown kind 3"),
        (model([*PIECES, ("ab", -1.0, 1)]), "'ab' stands twice"),
        (model(PIECES[1:]), "0 unknown pieces"),
        (model([*PIECES, (b"\xff", -1.0, 1)]), "not UTF-8"),
        (model([*PIECES, ("x", float("nan"), 1)]), "score nan"),
        (model([*PIECES, ("x", 0.0, 4)], training=[(3, 2)]), "user-defined pieces in a model that is not unigram"),
        (model([*PIECES, ("x", 0.0, 5)]), "unused pieces, which cannot be imported"),
        (model([*PIECES, ("a" + SPACE * 2, 0.0, 4)]), "would change the user-defined piece"),
        (model([*PIECES, ("x", 0.0, 3)]), "control pieces of one character"),
        (model(training=[(3, 3)]), "model type 3"),
        (model(normal=[(2, b"\1\2")]), "normalisation rules say"),
        (model(normal=[(2, trie({"x": "y"})[:1032])]), "normalisation rules say"),
        (model(normal=[(2, trie({"x": "y"})[:-1])]), "lies outside"),
        (b"", "0 unknown pieces"),
    ],
)
def test_damaged_models_are_refused(load, content, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        load("tiny.model", content)
    assert caught.value.hint


def test_rules_are_read_from_their_trie():
    rules = {"x": "a", "xy": "bb", "z": ""}
    assert charsmap.rules(trie(rules)) == rules


def test_rules_that_the_engine_cannot_run_are_refused():
    with pytest.raises(ModelFileError, match="normalisation rules are neither"):
        charsmap.steps(trie({"x": "a"}))
