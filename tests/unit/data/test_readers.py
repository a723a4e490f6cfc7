"""Rows, sentences and pairs: what each format means, and the file and line of every fault."""

import bz2
import csv
import gzip
import io
import lzma
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.data.corpora import read_corpus, read_pairs, read_rows, read_sentences
from orrery.data.files import Faults, read_lines
from orrery.data.formats import ROWS, SUFFIXES, TEXT, WHOLE, format_of
from orrery.data.readers import blocks, tables
from orrery.errors import DataError, OrreryError, UsageError


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(source, **options):
    return [document.text for document in read_corpus(source, **options)]


# Tables


def test_csv_has_quotes_line_breaks_and_names(tmp_path):
    file = write(tmp_path, "a.csv", '\ufefftext,label\r\nplain,1\r\n"a, ""b""\r\nc",2\r\n\r\n"",3\r\n\u2028\x00\f,4')
    documents = list(read_corpus(file))
    assert [document.name for document in documents] == ["a.csv:2", "a.csv:3", "a.csv:6", "a.csv:7"]
    assert [document.text for document in documents] == ["plain", 'a, "b"\r\nc', "", "\u2028\x00\f"]
    assert [row["label"] for row in read_rows(file)] == ["1", "2", "3", "4"]


TABLE = st.lists(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), min_size=3, max_size=3), min_size=1
)


@given(TABLE)
def test_what_a_csv_writer_writes_is_read_back(tmp_path_factory, table):
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([["a", "b", "c"], *table])
    file = write(tmp_path_factory.mktemp("csv"), "a.csv", written.getvalue())
    assert [list(row.values()) for row in read_rows(file)] == table


def test_tab_separated_values_know_no_quotes_and_need_no_names(tmp_path):
    file = write(tmp_path, "a.tsv", 'say "hi\t1\n"\t0\n')
    assert list(read_rows(file, ["1", "2"])) == [{"1": 'say "hi', "2": "1"}, {"1": '"', "2": "0"}]
    assert texts(file, column="1") == ['say "hi', '"']
    assert texts(write(tmp_path, "b.tab", "text\tlabel\nx\t1\n")) == ["x"]


def test_a_field_is_longer_than_the_library_lets_it_be(tmp_path):
    novel = "word, " * 100_000
    assert texts(write(tmp_path, "a.csv", f'text\n"{novel}"\n')) == [novel]


BAD_ROWS = {
    "short\n": "1 fields in the row, 2 columns in the first",
    "a,b,c\n": "3 fields in the row, 2 columns in the first",
    '"a"b,1\n': "not CSV: ',' expected",
    "a\rb,1\n": "lone CR",
    b"\xff\xfe,1\n": "invalid UTF-8 at byte 0, 2 of 2 bytes",
    b'"one\n\xff two",1\n': "invalid UTF-8 at byte 4",
}


@pytest.mark.parametrize("row", BAD_ROWS, ids=range(len(BAD_ROWS)))
def test_a_bad_row_is_named_by_its_first_line(row, tmp_path):
    row_bytes = row.encode() if isinstance(row, str) else row
    file = write(tmp_path, "a.csv", b"text,label\ngood,1\n" + row_bytes + b"better,2\n")
    with pytest.raises(DataError, match=r"a\.csv:3: ") as caught:
        texts(file)
    assert BAD_ROWS[row] in str(caught.value)
    assert texts(file, skip_bad=1) == ["good", "better"]


def test_bad_bytes_are_replaced_where_asked(tmp_path):
    assert texts(write(tmp_path, "a.csv", b"text\n\xffok\n"), invalid="replace") == ["\ufffdok"]


def test_a_quote_that_is_never_closed_is_named_where_it_opens(tmp_path, monkeypatch):
    file = write(tmp_path, "a.csv", 'text\ngood\n"open\n' + "x" * 50 + "\n")
    with pytest.raises(DataError, match=r"a\.csv:3: a quote is opened and never closed"):
        texts(file)
    limit = csv.field_size_limit(20)
    try:
        monkeypatch.setattr(tables, "LONGEST_FIELD", 20)
        with pytest.raises(DataError, match=r"a\.csv:3: a quote is opened and never closed"):
            texts(file)
    finally:
        csv.field_size_limit(limit)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_field_may_be_as_long_as_a_novel(name, tmp_path):
    limit = csv.field_size_limit(131_072)  # as the library has it in a new process
    try:
        novel = "word " * 50_000
        assert texts(write(tmp_path, name, f"text\n{novel}\n")) == [novel]
    finally:
        csv.field_size_limit(limit)


def test_a_missing_column_names_those_there_are(tmp_path):
    with pytest.raises(DataError, match=r"no column 'text' \(hint: it has 2 columns: body, label; choose"):
        texts(write(tmp_path, "a.csv", "body,label\nx,1\n"), skip_bad=5)
    with pytest.raises(DataError, match=r"1 columns: text;label \(perhaps ';' separates them"):
        texts(write(tmp_path, "a.csv", "text;label\nx;1\n"))
    with pytest.raises(DataError, match="two columns 'text'"):
        texts(write(tmp_path, "a.csv", "text,text\nx,1\n"))
    assert texts(write(tmp_path, "a.csv", "text,text\nx,1\n"), column="1") == ["text", "x"]  # as the hint says
    with pytest.raises(DataError, match=r"it has 6 columns: a, b, c, d, e, \.\.\.; choose"):
        texts(write(tmp_path, "a.csv", "a,b,c,d,e,f\n"))
    with pytest.raises(DataError, match=r"no column '3' \(hint: it has 2 columns: 1, 2"):
        texts(write(tmp_path, "a.csv", "x,1\n"), column="3")
    with pytest.raises(DataError, match=r"no column 'b'"):
        list(read_rows(write(tmp_path, "a.jsonl", '{"a": 1}\n'), ["a", "b"]))


# Sentences

CONLLU = """# newdoc id = one
# sent_id = s1
# text = I can't, Ann.
1\tI\tI\tPRON\tPRP\tCase=Nom|Number=Sing\t2\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tca\tcan\tAUX\tMD\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tgo\tgo\tVERB\t_\t_\t_\t_\t0:root\t_
4\t,\t,\tPUNCT\t,\t_\t2\tpunct\t_\t_
5\tAnn\tAnn\tPROPN\tNNP\t_\t2\tvocative\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

1\tNo\tno\t_\t_\t_\t_\t_\t_\t_
 \t
# newdoc
1\tTwo\ttwo\tNUM\tCD\t_\t0\troot\t_\t_
"""


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_conllu_is_read_whole(ends, tmp_path):
    file = write(tmp_path, "a.conllu", "\ufeff" + CONLLU.replace("\n", ends))
    first, second, third = read_sentences(file)
    assert first.words == ("I", "ca", "n't", ",", "Ann", ".")
    assert first.lemmas == ("I", "can", "not", ",", "Ann", ".")
    assert first.upos == ("PRON", "AUX", "PART", "PUNCT", "PROPN", "PUNCT")
    assert first.xpos == ("PRP", "MD", "RB", ",", "NNP", ".")
    assert first.feats[:2] == ({"Case": "Nom", "Number": "Sing"}, {})
    assert first.heads == (2, 0, 2, 2, 2, 2)
    assert first.deprels[0] == "nsubj"
    assert (first.line, first.name, first.text, first.starts_document) == (1, "s1", "I can't, Ann.", True)
    assert (second.line, second.name, second.text, second.heads) == (13, "13", "No", (None,))
    assert third.starts_document
    assert [(document.name, document.text) for document in read_corpus(file)] == [
        ("a.conllu:1", "I can't, Ann.\nNo"),
        ("a.conllu:15", "Two"),
    ]


def test_the_text_is_put_together_where_no_comment_has_it(tmp_path):
    (tmp_path / "a.conllu").write_text(CONLLU.replace("# text", "# other"))
    assert next(read_sentences(tmp_path / "a.conllu")).text == "I can't, Ann."
    (tmp_path / "a.conllu").write_text(CONLLU.replace("# text = I can't, Ann.", "# text ="))
    assert next(read_sentences(tmp_path / "a.conllu")).text == "I can't, Ann."


def test_the_text_of_the_comment_goes_before_what_the_forms_spell(tmp_path):
    (tmp_path / "a.conllu").write_text(CONLLU.replace("# text = I can't, Ann.", "# text =  I  can\u2019t, = Ann. "))
    assert next(read_sentences(tmp_path / "a.conllu")).text == " I  can\u2019t, = Ann. "


def test_sentences_before_any_document_are_their_own(tmp_path):
    lines = CONLLU.split("\n")[1:]
    (tmp_path / "a.conllu").write_text("\n".join(lines))
    assert texts(tmp_path / "a.conllu") == ["I can't, Ann.", "No", "Two"]


WORD = "1\tNo\tno\tINTJ\tUH\t_\t0\troot\t_\t_"
BAD_WORDS = {
    WORD.replace("\t", " "): "; tabs separate columns, and it has spaces",
    WORD + "\t_": "11 columns instead of 10",
    WORD.replace("No", ""): "column 2 is empty",
    WORD.replace("1", "x", 1): "'x' is not the id of a word",
    WORD.replace("1", "2", 1): "word 2 where word 1 should stand",
    WORD.replace("1", "9" * 5000, 1): "is not the id of a word",
    WORD.replace("\t0\t", "\t2\t"): "head '2' of word 1 in a sentence of 1",
    WORD.replace("\t0\t", "\t1\t"): "head '1' of word 1",
    WORD.replace("\t0\t", "\t\u0663\t"): "head '\u0663'",
    WORD.replace("\t0\t", "\t" + "9" * 5000 + "\t"): "head '99999",
    WORD.replace("UH\t_", "UH\tCase"): "features are not Name=Value",
    "# only a comment": "a sentence without words",
}


@pytest.mark.parametrize("word", BAD_WORDS, ids=range(len(BAD_WORDS)))
def test_a_bad_sentence_is_named(word, tmp_path):
    file = write(tmp_path, "a.conllu", f"{WORD}\n\n{word}\n\n{WORD}\n")
    with pytest.raises(DataError, match=r"a\.conllu:3: ") as caught:
        list(read_sentences(file))
    assert BAD_WORDS[word] in str(caught.value)
    assert [sentence.line for sentence in read_sentences(file, skip_bad=1)] == [1, 5]


def test_a_file_without_sentences_stops_before_it_fills_the_memory(tmp_path):
    file = write(tmp_path, "a.conll", "word\tO\n" * 100_001)
    with pytest.raises(DataError, match="100,000 lines without an empty one"):
        list(read_sentences(file))


def test_tagged_words(tmp_path):
    file = write(tmp_path, "a.conll", "New\tB-place\nYork\tI-place\n\t\nnew words\tO\n\n\n!\tO")
    assert [(sentence.line, sentence.words, sentence.tags) for sentence in read_sentences(file)] == [
        (1, ("New", "York"), ("B-place", "I-place")),
        (4, ("new words",), ("O",)),
        (7, ("!",), ("O",)),
    ]
    assert texts(file) == ["New York", "new words", "!"]
    conll2003 = write(tmp_path, "b.bio", "-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nsays VBZ B-VP O\n")
    (sentence,) = read_sentences(conll2003)
    assert (sentence.words, sentence.tags, sentence.starts_document) == (("EU", "says"), ("B-ORG", "O"), True)


@pytest.mark.parametrize("line", ["word", "word\t", "\tO", b"\xff\tO"])
def test_a_line_without_word_or_tag_is_named(line, tmp_path):
    content = line if isinstance(line, bytes) else line.encode()
    file = write(tmp_path, "a.conll", b"a\tO\n\nb\tO\n" + content + b"\n\nc\tO\n")
    with pytest.raises(DataError, match=r"a\.conll:4: "):
        list(read_sentences(file))
    assert [sentence.words for sentence in read_sentences(file, skip_bad=1)] == [("a",), ("c",)]


# Pairs


def test_lines_are_paired_whatever_else_splits_lines(tmp_path):
    left = write(tmp_path, "a.en.gz", gzip.compress("\ufeffone\x0b\u2028\x85\rstill one\r\ntwo".encode()))
    right = write(tmp_path, "a.de.xz", lzma.compress(b"eins\nzwei\n"))
    pairs = [(pair.line, pair.source, pair.target) for pair in read_pairs(left, right)]
    assert pairs == [(1, "one\x0b\u2028\x85\rstill one", "eins"), (2, "two", "zwei")]


def test_unequal_files_are_told_with_both_counts(tmp_path):
    short, long = write(tmp_path, "a.en", "x\n" * 3), write(tmp_path, "a.de", "y\n" * 7)
    with pytest.raises(DataError, match=r"a\.en has 3 lines, .*a\.de has 7"):
        list(read_pairs(short, long, skip_bad=9))
    with pytest.raises(DataError, match=r"a\.de has 7 lines, .*a\.en has 3"):
        list(read_pairs(long, short))
    assert list(read_pairs(write(tmp_path, "b", ""), write(tmp_path, "c", ""))) == []


def test_an_empty_side_is_an_error_or_skipped_or_kept(tmp_path):
    left, right = write(tmp_path, "a.en", "a\n \nc\n"), write(tmp_path, "a.de", "x\ny\nz\n")
    with pytest.raises(DataError, match=r"a\.en:2: an empty line"):
        list(read_pairs(left, right))
    with pytest.raises(DataError, match=r"a\.en:2: an empty line"):
        list(read_pairs(right, left))
    assert [pair.line for pair in read_pairs(left, right, empty="skip")] == [1, 3]
    assert [pair.line for pair in read_pairs(left, right, empty="keep")] == [1, 2, 3]


def test_a_bad_line_costs_its_pair_and_the_rest_stays_aligned(tmp_path):
    left, right = write(tmp_path, "a.en", b"a\n\xff\nc\n"), write(tmp_path, "a.de", "x\ny\nz\n")
    with pytest.raises(DataError, match=r"a\.en:2: invalid UTF-8 at byte 2"):
        list(read_pairs(left, right))
    assert [(pair.source, pair.target) for pair in read_pairs(left, right, skip_bad=1)] == [("a", "x"), ("c", "z")]


def test_what_is_no_pair_of_files_is_refused(tmp_path):
    with pytest.raises(DataError, match="name two files, or one of: multi30k-en-de, multi30k-en-de/train"):
        read_pairs("sst2")
    write(tmp_path, "a.txt", "x")
    write(tmp_path, "b.txt", "x")
    with pytest.raises(UsageError, match="2 files"):
        read_pairs(tmp_path, tmp_path / "a.txt")


# All of them

HEADS = {".csv": "text\n", ".tsv": "text\n", ".tab": "text\n"}
RECORDS = {
    **dict.fromkeys([".csv", ".tsv", ".tab", ".txt", ".md", ".rst"], "word\n"),
    **dict.fromkeys([".html", ".htm", ".xhtml"], "<p>word</p>\n"),
    **dict.fromkeys([".jsonl", ".ndjson", ".json"], '{"text": "word"}\n'),
    ".conllu": "1\tword\tword\t_\t_\t_\t0\troot\t_\t_\n\n",
    **dict.fromkeys([".conll", ".bio"], "word\tO\n\n"),
}


def test_every_format_is_tried_below():
    # Parquet, translation memories (test_translation_units.py) and archives (test_pictures_of_others.py) have theirs.
    assert {*RECORDS, ".parquet", ".tar", ".tmx", ".xlf", ".xliff"} == {*SUFFIXES, *ROWS}


@pytest.mark.parametrize("suffix", RECORDS)
def test_compressed_and_damaged(suffix, tmp_path):
    content = (HEADS.get(suffix, "") + RECORDS[suffix]).encode()
    plain = texts(write(tmp_path, f"a{suffix.upper()}", content))
    assert [text.strip() for text in plain] == ["word"]
    for ending, compress in ((".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)):
        assert texts(write(tmp_path, f"a{suffix}{ending}", compress(content))) == plain
        for damaged in (compress(content)[:-9], content + b"x" * 20):
            with pytest.raises(DataError, match="damaged"):
                texts(write(tmp_path, f"a{suffix}{ending}", damaged))


@pytest.mark.parametrize("suffix", sorted(set(RECORDS) - {*TEXT, *WHOLE}))
def test_empty_and_utf16_files_are_told(suffix, tmp_path):
    with pytest.raises(DataError, match=r"0 documents|no rows"):
        texts(write(tmp_path, f"a{suffix}", ""))
    with pytest.raises(DataError, match="UTF-16, not UTF-8"):
        texts(write(tmp_path, f"a{suffix}", (HEADS.get(suffix, "") + RECORDS[suffix]).encode("utf-16")))


def test_utf16_text_is_told(tmp_path):
    with pytest.raises(DataError, match=r"UTF-16, not UTF-8 \(hint: convert it: `iconv"):
        texts(write(tmp_path, "a.txt", "word".encode("utf-16")))


@pytest.mark.parametrize("suffix", sorted(set(RECORDS) - {*TEXT, *WHOLE}))
def test_a_file_of_any_size_needs_the_memory_of_a_record(suffix, tmp_path):
    # A word of 1,000 letters: the file has 1 MB.
    record = RECORDS[suffix].replace("word", "word" * 250, 1)
    file = write(tmp_path, f"a{suffix}", HEADS.get(suffix, "") + record * 1_000)
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_corpus(file))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 1_000
    assert peak < 250_000


def test_pairs_of_any_number_need_the_memory_of_one(tmp_path):
    file = write(tmp_path, "a.en", ("word" * 250 + "\n") * 1_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_pairs(file, file)) == 1_000
        assert tracemalloc.get_traced_memory()[1] < 250_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["a.zip", "a.tgz", "a.zst", "a.pdf", "a.xlsx", "a.parquet.gz"])
def test_formats_that_are_not_read_say_what_to_do(name, tmp_path):
    with pytest.raises(DataError, match=r"not read|compressed Parquet"):
        texts(write(tmp_path, name, "x"))


def test_the_wrong_kind_of_file_names_the_right_ones(tmp_path):
    with pytest.raises(DataError, match=r"no file of sentences .*\.conllu, \.conll, \.bio"):
        list(read_sentences(write(tmp_path, "a.csv", "x")))
    with pytest.raises(DataError, match=r"no file of rows .*\.jsonl, .*\.parquet"):
        list(read_rows(write(tmp_path, "a.txt", "x")))


def refusal(read):
    """Return the error that reading raises, or None where it reads to the end."""
    try:
        list(read())
    except OrreryError as error:
        return error
    return None


@pytest.mark.parametrize("suffix", RECORDS)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_words(suffix, tmp_path_factory, content):
    file = write(tmp_path_factory.getbasetemp(), f"any{suffix}", content)
    error = refusal(lambda: read_corpus(file, column="1" if suffix in HEADS else "text"))
    assert error is None or (error.exit_code == 3 and file.name in error.message and error.hint)


@given(st.binary(max_size=200))
def test_any_bytes_are_pairs_with_themselves(tmp_path_factory, content):
    file = write(tmp_path_factory.getbasetemp(), "any", content)
    error = refusal(lambda: read_pairs(file, file, invalid="replace", empty="keep"))
    assert error is None or "UTF-16" in error.message


def test_lines_join_to_the_file(tmp_path):
    content = b"a\r\n\nb\x00\x0c\xe2\x80\xa8c\rd"
    lines = list(read_lines(write(tmp_path, "a", content)))
    assert b"".join(line.content for line in lines) == content
    assert [content[line.offset :][: len(line.content)] for line in lines] == [line.content for line in lines]
    assert [line.number for line in lines] == [1, 2, 3]


def test_faults_are_counted_by_file(tmp_path):
    faults = Faults(allowed=1)
    faults.meet(DataError("one", ""))
    with pytest.raises(DataError, match="two"):
        faults.meet(DataError("two", ""))
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path, name, 'x\n{"text": "good"}\n')
    assert texts(tmp_path, skip_bad=1) == ["good", "good"]


def test_format_of_ignores_case_and_compression(tmp_path):
    assert format_of(tmp_path / "A.CSV.GZ") == ".csv"


def test_a_sentence_has_at_most_a_hundred_thousand_lines(tmp_path):
    file = write(tmp_path, "a.bio", b"a\tO\n" * blocks.MOST_LINES + b"\n")
    assert [len(lines) for lines in blocks.read_blocks(file)] == [100_000]
    file.write_bytes(b"a\tO\n" * (blocks.MOST_LINES + 1))
    with pytest.raises(DataError, match="100,000 lines without an empty one"):
        list(blocks.read_blocks(file))


def test_quotes_that_pandas_wrote_into_a_tab_separated_file_are_told_once(tmp_path, caplog):
    file = write(tmp_path, "a.tsv", b'text\tlabel\n"He said ""hi"""\tx\n"""hi"" she said"\ty\n')
    assert [row["text"] for row in read_rows(file)] == ['"He said ""hi"""', '"""hi"" she said"']
    assert [record.message.partition("a.tsv")[2][:32] for record in caplog.records] == [
        ": a field in quotes with doubled"
    ]
    caplog.clear()
    assert list(read_rows(write(tmp_path, "b.tsv", b'text\n"Hi"\n"a" and "b"\n"\n""\n"" x\n')))
    assert not caplog.records
