import bz2
import gzip
import json
import lzma

import pytest

from orrery.data import python_docs
from orrery.data.corpora import Document, corpus_fingerprint, read_corpus
from orrery.errors import DataError


def texts(source, **options):
    return [document.text for document in read_corpus(source, **options)]


def test_text_is_read_byte_for_byte(tmp_path):
    text = "\ufeffa\r\nb\rc\x00d\n\u2028é שלום 👨‍👩‍👧"
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert texts(tmp_path / "a.txt") == [text]


def test_a_folder_is_read_in_order_with_its_own_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.md").write_text("two")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"three"))
    (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(b'{"text": "zero"}\n\n{"text": "one"}\n'))
    (tmp_path / "picture.png").write_bytes(b"\xff\xd8")
    assert list(read_corpus(tmp_path)) == [
        Document("a.jsonl.xz:1", "zero"),
        Document("a.jsonl.xz:3", "one"),
        Document("b/x.md", "two"),
        Document("c.txt.gz", "three"),
    ]


def test_invalid_utf8_names_the_offset_in_the_file(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"abc\xff\xfe d" + b"x" * 10)
    with pytest.raises(DataError, match="invalid UTF-8 at byte 3, 2 of 17 bytes"):
        texts(file)
    assert texts(file, invalid="replace")[0].startswith("abc\ufffd\ufffd d")
    lines = tmp_path / "b.jsonl"
    lines.write_bytes(b'{"text": "ok"}\n{"text": "\xff"}\n')
    with pytest.raises(DataError, match=r"b\.jsonl:2: invalid UTF-8 at byte 25"):
        texts(lines)


BAD_LINES = {
    '{"text": ': "not JSON",
    "[1]": "not an object but list",
    '{"text": 5}': "column 'text' is not a text but int",
    '{"other": "x"}': "no column 'text'",
    '{"text": "\\ud800"}': "lone surrogate at character 0",
    "[" * 100_000: "not JSON",
    "9" * 5000: "not JSON",
    json.dumps({str(number): 0 for number in range(10**5)}): "100,000 columns",
}


@pytest.mark.parametrize("line", BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_is_named(line, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "good"}\n' + line + '\n{"text": "better"}\n')
    with pytest.raises(DataError, match=r"rows\.jsonl:2: ") as caught:
        texts(file)
    assert BAD_LINES[line] in str(caught.value)
    assert texts(file, skip_bad=1) == ["good", "better"]


def test_more_bad_lines_than_allowed_stop(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("x\ny\nz\n")
    with pytest.raises(DataError, match=r"rows\.jsonl:3"):
        texts(file, skip_bad=2)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_cut_off_file_is_named(suffix, tmp_path):
    file = tmp_path / f"a.txt{suffix}"
    whole = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[suffix](b"text" * 1000)
    for content in (whole[:-9], b"not compressed"):
        file.write_bytes(content)
        with pytest.raises(DataError, match=rf"a\.txt\{suffix}: damaged"):
            texts(file)


def test_what_is_missing_is_named_with_the_command_that_gets_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_DATA", str(tmp_path))
    with pytest.raises(DataError, match="orrery data fetch tiny-shakespeare"):
        texts("tiny-shakespeare")
    with pytest.raises(DataError, match="named corpora are: python-docs, banking77"):
        texts("no-such-thing")
    with pytest.raises(DataError, match="not a text corpus"):
        texts("scitldr")
    with pytest.raises(DataError, match=r"no text among its files \(0\)"):
        texts(tmp_path)


def test_a_fingerprint_tells_texts_names_and_borders_apart():
    corpora = [("a", "bc"), ("ab", "c"), ("a", "bd")], [("a", "b"), ("c", "")], [("a", ""), ("c", "b")], []
    prints = {corpus_fingerprint(Document(*pair) for pair in corpus) for corpus in corpora}
    assert len(prints) == len(corpora)


def test_python_docs_are_whole_sorted_and_repeatable():
    documents = list(read_corpus("python-docs"))
    names = [document.name for document in documents]
    assert len(set(names)) == len(names) > 400
    assert "module:json.decoder" in names
    assert not any(part in name for name in names for part in ("idlelib", ":test.", "site-packages"))
    assert corpus_fingerprint(documents) == corpus_fingerprint(read_corpus("python-docs"))


def test_docstrings_stand_under_their_qualified_names():
    source = b'"""Top."""\nclass A:\n    """Of A."""\n    def f(self):\n        """Of f."""\ndef g(): pass\n'
    assert python_docs.module_docstrings("m", source) == "m\n\nTop.\n\n\nm.A\n\nOf A.\n\n\nm.A.f\n\nOf f.\n"
    assert python_docs.module_docstrings("m", b"x = 1") == ""
    assert python_docs.module_docstrings("m", b'"""Top""" def') == ""


def test_a_python_without_topics_or_sources(monkeypatch, tmp_path):
    monkeypatch.setattr(python_docs.importlib.util, "find_spec", lambda name: None)
    assert {name.split(":")[0] for name, _ in python_docs.collect()} == {"module"}
    monkeypatch.setattr(python_docs.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(DataError, match="neither its topics nor the sources"):
        list(python_docs.collect())
