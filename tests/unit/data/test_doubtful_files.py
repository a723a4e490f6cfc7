"""What a reader must not guess: values it cannot hold, names that stand twice, records under another name."""

import json

import pytest

from orrery.data.corpora import read_corpus, read_rows
from orrery.errors import DataError


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(source, **options):
    return [document.text for document in read_corpus(source, **options)]


# Parquet


@pytest.fixture
def save(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write(columns, names=None):
        arrays = list(columns.values()) if isinstance(columns, dict) else columns
        table = arrow.Table.from_arrays(arrays, names=names or list(columns))
        parquet.write_table(table, tmp_path / "a.parquet")
        return tmp_path / "a.parquet"

    return write


BEYOND_PYTHON = {
    "nanoseconds": ("timestamp[ns]", [0, 1_700_000_000_123_456_789]),
    "a duration": ("duration[ns]", [0, 1_001]),
    "a time": ("time64[ns]", [0, 1_001]),
    "a day beyond the year 9999": ("date32", [0, 2**31 - 1]),
    "a moment beyond the year 9999": ("timestamp[us]", [0, 2**62]),
}


@pytest.mark.parametrize("kind", BEYOND_PYTHON)
def test_a_value_that_python_cannot_hold_is_a_bad_row(kind, save):
    import pyarrow

    name, numbers = BEYOND_PYTHON[kind]
    types = {"date32": pyarrow.date32(), "time64[ns]": pyarrow.time64("ns"), "duration[ns]": pyarrow.duration("ns")}
    unit = name.rpartition("[")[2].rstrip("]")
    column = pyarrow.array(numbers, types.get(name) or pyarrow.timestamp(unit))
    file = save({"text": pyarrow.array(["a", "b"]), "when": column})
    with pytest.raises(DataError, match=r"a\.parquet:2: column 'when' \(.*\) has a value that cannot be read"):
        list(read_rows(file))
    assert [row["text"] for row in read_rows(file, skip_bad=1)] == ["a"]
    assert texts(file) == ["a", "b"]  # the column is not asked for


def test_a_time_zone_that_nobody_knows_is_told(save):
    import pyarrow

    file = save({"text": pyarrow.array(["a"]), "when": pyarrow.array([0], pyarrow.timestamp("us", "Mars/Olympus"))})
    with pytest.raises(DataError, match=r"a\.parquet:1: column 'when'"):
        list(read_rows(file))


def invalid_text():
    import pyarrow

    return pyarrow.StringArray.from_buffers(
        2, pyarrow.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0"), pyarrow.py_buffer(b"a\xffb")
    )


def inside(kind):
    import pyarrow

    offsets = pyarrow.array([0, 1, 2], pyarrow.int32())
    if kind == "list":
        return pyarrow.ListArray.from_arrays(offsets, invalid_text()), [["a"], ["\ufffdb"]]
    if kind == "struct":
        return pyarrow.StructArray.from_arrays([invalid_text()], ["x"]), [{"x": "a"}, {"x": "\ufffdb"}]
    keys = pyarrow.array(["k", "k"])
    return pyarrow.MapArray.from_arrays(offsets, keys, invalid_text()), [[("k", "a")], [("k", "\ufffdb")]]


@pytest.mark.parametrize("kind", ["list", "struct", "map"])
def test_invalid_utf8_inside_a_value_is_a_bad_row_or_replaced(kind, save):
    import pyarrow

    column, expected = inside(kind)
    file = save({"text": pyarrow.array(["a", "b"]), "inside": column})
    with pytest.raises(DataError, match=r"a\.parquet:2: (column 'inside': )?invalid UTF-8 at byte 0"):
        list(read_rows(file))
    assert len(list(read_rows(file, skip_bad=1))) == 1
    assert [row["inside"] for row in read_rows(file, invalid="replace")] == expected


def test_invalid_utf8_in_a_dictionary_is_told(save):
    import pyarrow

    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1], pyarrow.int8()), invalid_text())
    with pytest.raises(DataError, match=r"a\.parquet: .*Invalid UTF8"):
        list(read_rows(save({"inside": column})))


def test_parquet_columns_of_one_name_are_refused(save):
    import pyarrow

    file = save([pyarrow.array(["x"]), pyarrow.array(["y"]), pyarrow.array(["z"])], ["a", "a", "text"])
    with pytest.raises(DataError, match=r"a\.parquet: two columns 'a'"):
        list(read_rows(file))


# Names that stand twice


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_doubled_name_of_a_column_is_refused(name, tmp_path):
    mark = "," if name.endswith("csv") else "\t"
    file = write(tmp_path, name, "a,a,text\n1,2,three\n".replace(",", mark))
    for read in (lambda: list(read_rows(file)), lambda: texts(file)):
        with pytest.raises(DataError, match=rf"a\.{name[2:]}: two columns 'a'"):
            read()
    assert texts(file, column="3") == ["text", "three"]  # numbers are never doubled


def test_columns_without_a_name_hurt_only_who_wants_them_all(tmp_path):
    file = write(tmp_path, "a.csv", ",text,,\n1,word,2,3\n")
    assert texts(file) == ["word"]
    assert list(read_rows(file, ["text"])) == [{"text": "word"}]
    with pytest.raises(DataError, match=r"a\.csv: 3 columns without a name"):
        list(read_rows(file))


@pytest.mark.parametrize("line", ['{"text": "one", "text": "two"}', '{"text": "one", "n": [{"a": 1, "b": 2, "a": 3}]}'])
def test_a_doubled_key_of_an_object_is_a_bad_record(line, tmp_path):
    good = '{"text": "good"}'
    for name, content in (("a.jsonl", f"{good}\n{line}\n{good}\n"), ("a.json", f"[{good},\n{line}, {good}]")):
        file = write(tmp_path, name, content)
        with pytest.raises(DataError, match=rf"{name}:2: two keys '(text|a)'"):
            texts(file)
        assert texts(file, skip_bad=1) == ["good", "good"]


# .json


RECORDS = [{"text": "one", "n": 1}, {"text": 'two, "[]{}"\né', "n": [2, {"m": None}]}, {"text": "three", "n": 3.5}]


@pytest.mark.parametrize("layout", [None, 2])
def test_a_json_file_with_a_list_of_records_is_rows(layout, tmp_path):
    file = write(tmp_path, "a.json", json.dumps(RECORDS, indent=layout, ensure_ascii=layout is None))
    assert list(read_rows(file)) == RECORDS
    assert [(document.name, document.text) for document in read_corpus(file)][1] == ("a.json:2", 'two, "[]{}"\né')


def test_a_json_file_of_lines_is_rows_too(tmp_path):
    file = write(tmp_path, "a.json", "".join(json.dumps(record) + "\n" for record in RECORDS))
    assert list(read_rows(file)) == RECORDS


OTHER_JSON = {
    '{"data": [{"text": "x"}]}': r"one object with the keys data.*jq",
    '{"a": {"text": "x"},\n "b": {"text": "y"}}': r"one object with 2 objects by name.*jq -c '\.\[\]' FILE",
    '{\n "data": [1]\n}': "no JSON lines and no list of records.*jq",
    '"text"': "no JSON lines and no list of records",
    "[1]": r"a\.json:1: not an object but int",
    '[{"text": "x"}, {"text"': r"a\.json:2: not JSON",
    '[{"text": "x"} {"text": "y"}]': r"a\.json:2: not JSON: .*comma",
    '[{"text": "x"}] and more': "more after the list",
    '[{"text": "x"},]': r"a\.json:2: not JSON",
    "": "0 documents",
    "[]": "0 documents",
}


@pytest.mark.parametrize("content", OTHER_JSON, ids=range(len(OTHER_JSON)))
def test_other_json_says_what_it_is(content, tmp_path):
    with pytest.raises(DataError, match=OTHER_JSON[content]):
        texts(write(tmp_path, "a.json", content))


def test_a_list_of_records_streams(tmp_path):
    import tracemalloc

    file = write(tmp_path, "a.json", json.dumps([{"text": "word" * 250}] * 2_000))
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_corpus(file)) == 2_000
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_a_record_longer_than_a_block_is_read(tmp_path):
    long = {"text": 'é"\\' * 200_000}
    assert list(read_rows(write(tmp_path, "a.json", json.dumps([long, long], ensure_ascii=False)))) == [long, long]


def test_bad_bytes_in_a_list_of_records(tmp_path):
    file = write(tmp_path, "a.json", b'[{"text": "a"}, {"text": "\xff"}, {"text": "c"}]')
    with pytest.raises(DataError, match=r"a\.json:2: invalid UTF-8"):
        texts(file)
    assert texts(file, skip_bad=1) == ["a", "c"]
    assert texts(file, invalid="replace") == ["a", "\ufffd", "c"]


def test_a_folder_leaves_its_descriptions_out(tmp_path):
    write(tmp_path, "a.jsonl", '{"text": "word"}\n')
    write(tmp_path, "metadata.json", '{"author": "x"}')
    assert texts(tmp_path) == ["word"]


# .html

PAGE = """<!DOCTYPE html><html><head><title>A &amp; B</title><style>p {x: y}</style>
<script>if (a < b) c()</script></head>
<body><!-- none --><h1>One</h1><p>Two   words,<br>and
<b>th</b>ree.</p><ul><li>x</li><li>y</li></ul><pre>  a
  b</pre><table><tr><td>1</td><td>2</td></tr></table>caf&eacute; &#x4e2d;&lt;</body></html>"""


def test_a_page_is_its_text(tmp_path):
    expected = "A & B\n\nOne\n\nTwo words,\nand three.\n\nx\ny\n\n  a\n  b\n\n1\t2\n\ncafé 中<\n"
    for name in ("a.html", "a.htm", "a.xhtml"):
        assert texts(write(tmp_path, name, PAGE)) == [expected]
    assert len(texts(tmp_path)) == 3


def test_a_page_that_ends_without_its_marks_is_read_to_the_end(tmp_path):
    assert texts(write(tmp_path, "a.html", "<p>one</p>fish &amp")) == ["one\n\nfish &\n"]


def test_a_page_that_is_not_utf8_is_told(tmp_path):
    with pytest.raises(DataError, match="invalid UTF-8"):
        texts(write(tmp_path, "a.html", b"<p>caf\xe9</p>"))


# UTF-16 and UTF-32


LANGUAGES = ["hello world\nthis is text\n", "Добрый день\n", "καλημέρα κόσμε\n", "a,b\n"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.conll", "a.json", "a.html"])
@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_utf16_without_a_mark_is_recognised(name, coding, tmp_path):
    for text in LANGUAGES:
        with pytest.raises(DataError, match=r"UTF-(16|32)(LE|BE)?.*iconv -f UTF-(16|32)(LE|BE) -t UTF-8"):
            texts(write(tmp_path, name, text.encode(coding)))


@pytest.mark.parametrize("coding", ["utf-16", "utf-32"])
def test_a_mark_says_which(coding, tmp_path):
    for name in ("a.txt", "a.csv"):
        with pytest.raises(DataError, match=rf"{coding.upper()}.*iconv -f {coding.upper()} -t UTF-8"):
            texts(write(tmp_path, name, LANGUAGES[0].encode(coding)))


@pytest.mark.parametrize(
    "text", ["a\nb\nc\nd\ne\nf\n", "1\t2\t3\t4\t5\t6\t", "x\0y", "\0" * 20, "\x01\x02\x03\x04\x05\x06", "", "a\0", "a"]
)
def test_what_is_utf8_stays_so(text, tmp_path):
    assert texts(write(tmp_path, "a.txt", text)) == [text]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_table_as_pandas_writes_it(tmp_path, indent):
    rows = [{"text": f"a {n}", "label": n % 2} for n in range(3000)]
    columns = {name: {str(n): row[name] for n, row in enumerate(rows)} for name in rows[0]}
    split = {"columns": list(rows[0]), "index": list(range(3000)), "data": [list(row.values()) for row in rows]}
    for table in (columns, split):
        path = tmp_path / "table.json"
        path.write_text(json.dumps(table, indent=indent))
        assert list(read_rows(path)) == rows
        with pytest.raises(DataError, match=r"table\.json:1: no column 'words'"):
            list(read_rows(path, ["words"]))
    path.write_text('{"a": {"0": 1}}\n{"a": {"0": 2}}\n')  # JSON lines that look like it
    assert list(read_rows(path)) == [{"a": {"0": 1}}, {"a": {"0": 2}}]
