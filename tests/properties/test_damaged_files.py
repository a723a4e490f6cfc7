"""Every reader against small damage: a file is read, or refused by an error of ours; nothing else comes out."""

import gzip
import io
import lzma
import tarfile
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.data import formats
from orrery.data.corpora import read_corpus, read_pairs, read_rows, read_sentences
from orrery.data.overview import overview
from orrery.data.shards.large_text import ReadingOptions, read_blocks
from orrery.errors import OrreryError

WORDS = "1\tÉine\tein\tDET\tART\tCase=Nom|Number=Sing\t2\tdet\t_\t_\n"
WORDS += "2\tStadt\tstadt\tNOUN\t_\t_\t0\troot\t_\tSpaceAfter=No\n"
EMPTY_NODE = "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
PAGE = "<!DOCTYPE html><html><head><title>é</title><style>p{}</style></head><body><p a='1'>x &amp; y<br/><!-- c -->"
PAGE += "<![CDATA[z]]><pre>\n1 &#233;</pre><script>a<b</script><table><tr><td>1</td></tr></table></body></html>"
OBJECTS = ['{"text": "one é\\n", "n": [1, {"m": null}]}', '{"text": "two", "n": -1.5e3}', '{"text": "", "n": true}']
TMX = """<?xml version="1.0"?><tmx version="1.4"><header/><body><tu><tuv xml:lang="en"><seg>One &amp; two</seg></tuv>
<tuv xml:lang="fr"><seg>Un <ph>x</ph>é</seg></tuv></tu></body></tmx>"""
XLIFF = """<xliff version="1.2"><file source-language="en" target-language="fr"><body><trans-unit id="1">
<source>One</source><target>Uné</target></trans-unit></body></file></xliff>"""
SOUND = {
    **dict.fromkeys(formats.TEXT, "Some text, é.\r\n\r\nMore of it.\n"),
    **dict.fromkeys((".jsonl", ".ndjson"), "\n".join(OBJECTS)),
    ".json": f"[{', '.join(OBJECTS)}]",
    ".csv": 'text,label\r\nplain,1\r\n"a, ""b""\r\né",2\r\n',
    **dict.fromkeys((".tsv", ".tab"), 'text\tlabel\nsay "hi\t1\né\t0\n'),
    ".conllu": f"# newdoc id = a\n# text = Éine Stadt\n{WORDS}\n# sent_id = 2\n{WORDS}{EMPTY_NODE}\n",
    **dict.fromkeys((".conll", ".bio"), "-DOCSTART- O\n\nNew\tB-place\nYork\tI-place\n\né O\n"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), PAGE),
    ".tmx": TMX,
    **dict.fromkeys((".xlf", ".xliff"), XLIFF),
}
PACKED = {".gz": gzip.compress, ".xz": lzma.compress}


@lru_cache(maxsize=4)
def parquet(compression="snappy"):
    import pyarrow
    import pyarrow.parquet

    count = 40
    columns = {
        "text": [f"text {number} é" for number in range(count)],
        "tags": [["a", "é", None]] * count,
        "inner": [{"x": number, "y": "z"} for number in range(count)],
        "when": pyarrow.array([1_000] * count, pyarrow.timestamp("ns")),
        "long": pyarrow.array(["same"] * count).dictionary_encode(),
        "number": pyarrow.array([1.5, None] * (count // 2)),
    }
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file, compression=compression, row_group_size=16)
    return file.getvalue()


@lru_cache(maxsize=1)
def samples():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in (
            ("a/1.png", b"\x89PNG"),
            ("a/1.cls", b"0"),
            ("a/2.jpg", b"x"),
            ("a/2.json", b'{"n": "\xc3\xa9"}'),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def place(content, share):
    return min(int(share * len(content)), max(len(content) - 1, 0))


@st.composite
def damages(draw):
    """Return a function that changes some bytes of a content, at places given as shares of its length."""
    shares = st.floats(0, 1, exclude_max=True)
    kinds = st.sampled_from(["flip", "set", "cut", "insert", "repeat", "end"])
    steps = draw(st.lists(st.tuples(kinds, shares, st.integers(0, 255), st.integers(1, 12)), min_size=1, max_size=4))

    def damage(content):
        for kind, share, byte, count in steps:
            at = place(content, share)
            new = {
                "flip": bytes([content[at] ^ (1 << byte % 8)]) if content else b"",
                "set": bytes([byte]),
                "insert": content[at : at + 1] + bytes([byte]) * count,
                "repeat": content[at : at + count] * 2,
            }.get(kind, b"")
            width = {"cut": count, "repeat": count, "end": len(content)}.get(kind, 1)
            content = content[:at] + new + content[at + width :]
        return content

    return damage


def readings(file):
    """Return every way in which a file is read."""
    for invalid in ("error", "replace"):
        yield lambda invalid=invalid: list(read_corpus(file, invalid=invalid))
        yield lambda invalid=invalid: list(read_rows(file, invalid=invalid, skip_bad=2))
        yield lambda invalid=invalid: list(read_sentences(file, invalid=invalid))
        yield lambda invalid=invalid: list(read_blocks(file, ReadingOptions(invalid=invalid)))
        yield lambda invalid=invalid: list(read_pairs(file, file, invalid=invalid, empty="skip"))
    yield lambda: list(read_rows(file, ["1"]))
    yield lambda: overview(str(file), None, 3, "text")


def read_or_refuse(file):
    """Read a file in every way. Only an error of ours may come out, with the file's name and a hint."""
    errors = []
    for read in readings(file):
        try:
            read()
        except OrreryError as error:
            errors.append(error)
    assert all(file.name in error.message and error.hint for error in errors)


def test_no_format_is_forgotten():
    assert {*SOUND, ".parquet", ".tar"} == {*formats.SUFFIXES, *formats.ROWS}


@pytest.mark.parametrize("suffix", SOUND)
def test_the_undamaged_file_is_read(suffix, tmp_path):
    (tmp_path / f"a{suffix}").write_text(SOUND[suffix], encoding="utf-8")
    units = suffix in (".tmx", ".xlf", ".xliff")  # a text in two languages, and none of them is the text
    read = read_rows if units else read_corpus
    assert len(list(read(tmp_path / f"a{suffix}"))) >= 1


@pytest.mark.parametrize(
    "suffix", [".txt", ".jsonl", ".json", ".csv", ".tsv", ".conllu", ".conll", ".html", ".tmx", ".xlf"]
)
@given(damages())
def test_a_damaged_file_is_read_or_refused(suffix, tmp_path_factory, damage):
    file = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    file.write_bytes(damage(SOUND[suffix].encode()))
    read_or_refuse(file)


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("suffix", [".txt", ".json"])
@given(damages())
def test_a_damaged_package_is_read_or_refused(suffix, packing, tmp_path_factory, damage):
    file = tmp_path_factory.getbasetemp() / f"damaged{suffix}{packing}"
    file.write_bytes(damage(PACKED[packing](SOUND[suffix].encode())))
    read_or_refuse(file)


@pytest.mark.parametrize("compression", ["snappy", "none", "zstd"])
@given(damages())
def test_a_damaged_parquet_file_is_read_or_refused(compression, tmp_path_factory, damage):
    pytest.importorskip("pyarrow")
    file = tmp_path_factory.getbasetemp() / "damaged.parquet"
    file.write_bytes(damage(parquet(compression)))
    read_or_refuse(file)


@given(damages())
def test_a_damaged_archive_of_samples_is_read_or_refused(tmp_path_factory, damage):
    file = tmp_path_factory.getbasetemp() / "damaged.tar"
    file.write_bytes(damage(samples()))
    read_or_refuse(file)
