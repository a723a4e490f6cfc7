import json

import pytest

from orrery.errors import ModelFileError
from orrery.text import load_tokenizer

GPT2 = {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5, "<|endoftext|>": 6}
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "e"]


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
