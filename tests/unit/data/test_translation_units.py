"""Translation memories and parallel files by their languages."""

import tracemalloc

import pytest

from orrery.data.corpora import read_rows
from orrery.data.sources.pairs import PairSettings, PairSource
from orrery.errors import DataError

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" datatype="xml" segtype="sentence" o-tmf="x" adminlang="en"
  creationtool="x" creationtoolversion="1"/><body>
<tu tuid="1"><note>x</note><tuv xml:lang="en"><prop type="a">b</prop><seg>A <bpt i="1">&lt;b&gt;</bpt>joke<ept
  i="1">&lt;/b&gt;</ept> &amp; more</seg></tuv><tuv xml:lang="de"><seg>Ein <hi>Witz</hi>.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>No.</seg></tuv><tuv xml:lang="de"><seg>Nein.</seg></tuv></tu>
</body></tmx>"""
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"
 target-language="de" datatype="plaintext" original="x"><body><trans-unit id="1"><source>A <g id="1">joke</g><x id="2"/>
</source><target state="final">Ein Witz</target></trans-unit></body></file></xliff>"""
XLIFF2 = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de">
<file id="f"><unit id="1"><segment><source>A <pc id="1">joke</pc></source>
<target>Ein Witz</target></segment></unit></file></xliff>"""


def written(tmp_path, text, name):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def pairs(source, **how):
    read = PairSource.read(PairSettings.model_validate({"pairs": source, **how}))
    return [(pair.source, pair.target) for pair in read.train], " ".join(read.remarks())


def test_a_translation_memory(tmp_path):
    source = written(tmp_path, TMX, "x.tmx")
    found, said = pairs(source)
    assert found == [("A joke & more", "Ein Witz."), ("No.", "Nein.")]
    assert "de is written from en" in said
    assert pairs(source, columns={"source": "de", "target": "en"})[0][1] == ("Nein.", "No.")


@pytest.mark.parametrize("text", [XLIFF, XLIFF2])
def test_both_versions_of_xliff(tmp_path, text):
    ((source, target),), _ = pairs(written(tmp_path, text, "x.xlf"))
    assert (source.strip(), target) == ("A joke", "Ein Witz")


def test_what_is_wrong_with_a_unit_is_told_by_its_number(tmp_path):
    twice = TMX.replace('<seg>No.</seg></tuv><tuv xml:lang="de">', '<seg>No.</seg></tuv><tuv xml:lang="en">')
    with pytest.raises(DataError, match=r"x\.tmx:2: two texts in en"):
        pairs(written(tmp_path, twice, "x.tmx"))
    assert len(list(read_rows(tmp_path / "x.tmx", skip_bad=1))) == 1
    with pytest.raises(DataError, match=r"y\.tmx: not XML"):
        pairs(written(tmp_path, TMX[:300], "y.tmx"))
    alone = TMX[TMX.index("<tu>") : TMX.index("</tu>", TMX.index("<tu>")) + len("</tu>")]
    assert len(list(read_rows(written(tmp_path, alone, "z.tmx")))) == 1  # a unit that is all there is


def test_a_memory_of_any_size_needs_that_of_a_unit(tmp_path):
    head, unit, tail = TMX[: TMX.index("<tu ")], TMX[TMX.index("<tu>") : TMX.index("</body>")], "</body></tmx>"
    path = written(tmp_path, head + unit.replace("Nein", "n" * 1000) * 1000 + tail, "x.tmx")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_rows(path)) == 1000
        assert tracemalloc.get_traced_memory()[1] < 400_000
    finally:
        tracemalloc.stop()


def test_files_by_their_languages(tmp_path):
    for name, text in (("en", "A joke\nNo\n"), ("de", "Ein Witz\nNein\n"), ("csv", "x"), ("txt", "x")):
        written(tmp_path, text, f"Books.de-en.{name}")
    found, said = pairs(str(tmp_path / "Books.de-en"), columns={"source": "de", "target": "en"})
    assert found == [("Ein Witz", "A joke"), ("Nein", "No")]
    assert "Books.de-en.en is written from Books.de-en.de" in said
    written(tmp_path, "Sutki\nNe\n", "x.sl")
    written(tmp_path, "Dan\nNe\n", "x.hr")
    with pytest.raises(DataError, match="no columns are known to hold source and target among hr, sl"):
        pairs(str(tmp_path / "x"))
