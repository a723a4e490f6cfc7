import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.data.codings import foreign_coding
from orrery.data.corpora import read_corpus
from orrery.data.shards import large_text
from orrery.data.shards.large_text import ReadingOptions, decoded, read_blocks, read_texts
from orrery.errors import DataError
from orrery.text import chunks
from orrery.text.kinds import TOKENIZERS
from orrery.text.train import train_tokenizer

ALPHABET = "ab1é名前。.,!_'- \t\n\r\u00a0\u2003\x1c\x85🙂"
WORDS = "The quick brown fox, 123 jumps! 名前は。\n  over it's lazy dog's\ttail. Und Äpfel - süß.\n"


def joined(blocks):
    """Return the documents that blocks spell, in order."""
    documents, held = [], ""
    for block in blocks:
        held += block.text
        if block.last:
            documents.append((block.document, held))
            held = ""
    assert held == ""
    return documents


def nowhere(text):
    return None


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(large_text, "BLOCK", 16)
    monkeypatch.setattr(large_text, "WHOLE", 400)


def test_blocks_are_the_documents_of_the_corpus(small, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "long.txt").write_text(WORDS * 9, newline="")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(WORDS.encode()))
    (tmp_path / "c.md.xz").write_bytes(lzma.compress(b"short"))
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "rows.jsonl").write_text('{"text": ""}\n{"text": "one two three four five six seven"}\n')
    blocks = list(read_blocks(tmp_path, ReadingOptions()))
    assert joined(blocks) == [(document.name, document.text) for document in read_corpus(tmp_path)]
    assert max(len(block.text) for block in blocks) < 60
    whole = list(read_blocks(tmp_path / "a.txt.gz", ReadingOptions(), last_cut=nowhere))
    assert [(block.text, block.last) for block in whole] == [(WORDS, True)]
    assert "".join(read_texts(tmp_path / "b", ReadingOptions())) == WORDS * 9


@given(content=st.binary(max_size=60) | st.text(ALPHABET, max_size=40).map(str.encode), size=st.integers(1, 9))
def test_decoding_by_blocks_is_decoding_the_whole(content, size, tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "a.txt"
    file.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_text, "BLOCK", size)
        if foreign_coding(content):
            with pytest.raises(DataError, match=r"UTF-(16|32).*, not UTF-8"):
                list(decoded(file, "replace"))
            return
        assert "".join(decoded(file, "replace")) == content.decode("utf-8", "replace")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            with pytest.raises(DataError, match=f"invalid UTF-8 at byte {error.start} "):
                list(decoded(file, "error"))
        else:
            assert "".join(decoded(file, "error")) == text


@pytest.mark.parametrize("kind", TOKENIZERS.names())
def test_no_cut_changes_an_id(kind, monkeypatch):
    """Every place that `CUT` allows, tried one by one, on texts of few characters that meet in many ways."""
    tokenizer = train_tokenizer(kind, [WORDS * 3], None if kind in ("character", "word") else 330)
    assert tokenizer.cuttable

    @given(text=st.text(ALPHABET, max_size=30))
    def check(text):
        whole = tokenizer.encode_batch([text])[0]
        for match in chunks.CUT.finditer(text):
            parts = tokenizer.encode_batch([text[: match.start()], text[match.start() :]])
            assert parts[0] + parts[1] == whole
        place = chunks.last_cut(text)
        assert place == max((match.start() for match in chunks.CUT.finditer(text)), default=None)

    check()
    monkeypatch.setattr(chunks, "NEAR_THE_END", 3)
    check()


@pytest.mark.parametrize("kind", TOKENIZERS.names())
def test_a_tokenizer_trained_on_blocks_is_the_one_trained_on_the_whole(kind, small, tmp_path, monkeypatch):
    text = "".join(f"{WORDS[number % 9 :]} number {number * 37} of {number % 13}s\n" for number in range(150))
    (tmp_path / "a.txt").write_text(text, newline="")
    vocabulary = None if kind in ("character", "word") else 420
    blocks = list(read_texts(tmp_path / "a.txt", ReadingOptions()))
    monkeypatch.setattr(chunks, "CHUNK", 1 << 30)  # the whole at once
    whole = train_tokenizer(kind, [text], vocabulary)
    monkeypatch.setattr(chunks, "CHUNK", 32)
    assert len(blocks) > 100
    assert train_tokenizer(kind, blocks, vocabulary).fingerprint == whole.fingerprint


def test_a_text_without_a_place_to_cut_is_read_whole_up_to_a_limit(small, tmp_path):
    (tmp_path / "a.txt").write_text("x" * 400)
    assert [len(block.text) for block in read_blocks(tmp_path / "a.txt", ReadingOptions())] == [400]
    (tmp_path / "a.txt").write_text("x" * 401)
    with pytest.raises(DataError, match=r"a.txt: more than 400 characters without a place to cut"):
        list(read_blocks(tmp_path / "a.txt", ReadingOptions()))
    (tmp_path / "b.txt").write_text("x " * 300)
    with pytest.raises(DataError, match=r"b.txt: more than 400 characters, and this tokenizer can only read"):
        list(read_blocks(tmp_path / "b.txt", ReadingOptions(), last_cut=nowhere))
