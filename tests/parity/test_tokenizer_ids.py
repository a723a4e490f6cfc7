"""Published vocabularies give the ids that the reference libraries gave for the same texts."""

import json

import pytest

from orrery.text import load_tokenizer

TEXTS = 606


@pytest.fixture(scope="module")
def reference(data_set):
    """Return the tokenizer of a published file, and the reference's lines."""

    def read(vocabulary, ids):
        lines = data_set(f"tokenizer-reference/parity/{ids}.jsonl").read_text(encoding="utf-8").split("\n")
        rows = [json.loads(line) for line in lines if line]
        assert len(rows) == TEXTS
        return load_tokenizer(data_set(f"tokenizer-reference/{vocabulary}")), rows

    return read


@pytest.mark.parametrize("name", ["gpt2", "gpt2/encoder.json", "gpt2/vocab.bpe"])
def test_gpt2(reference, name):
    tokenizer, rows = reference(name, "gpt2")
    assert [tokenizer.encode(row["text"]) for row in rows] == [row["ids"] for row in rows]
    assert [tokenizer.decode(row["ids"]) for row in rows] == [row["text"] for row in rows]


def test_bert(reference):
    """The reference frames each text by [CLS] and [SEP], and matches control tokens written in it."""
    tokenizer, rows = reference("bert-base-uncased", "bert_uncased")
    frame = [tokenizer.special("[CLS]")], [tokenizer.special("[SEP]")]
    framed = [frame[0] + tokenizer.encode(row["text"], special=True) + frame[1] for row in rows]
    assert framed == [row["ids"] for row in rows]
    assert not any(
        set(tokenizer.encode(row["text"])) & (tokenizer.control - {tokenizer.special("unknown")}) for row in rows
    )


@pytest.mark.parametrize("model", ["test_model", "test_ja_model"])
def test_sentencepiece(reference, model):
    """The Japanese model's texts hold a run of digits that only sums in float32 cut as the reference does."""
    tokenizer, rows = reference(f"sentencepiece/{model}.model", f"sentencepiece_{model}")
    assert [tokenizer.encode(row["text"]) for row in rows] == [row["ids"] for row in rows]
    assert [tokenizer.decode(row["ids"]) for row in rows] == [row["decoded"] for row in rows]
    assert not any(set(tokenizer.encode(row["text"])) & tokenizer.control for row in rows)
