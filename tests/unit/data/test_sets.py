import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from orrery.data import sets
from orrery.errors import DataError, UsageError

DOCS = Path(__file__).parents[3] / "docs" / "data.md"


def test_the_documentation_shows_the_registry():
    text = DOCS.read_text(encoding="utf-8")
    assert sets.table() in text
    assert sets.checksums() in text


def test_the_registry_is_complete():
    for data_set in sets.SETS.values():
        assert data_set.licence
        assert data_set.conversion
        assert set(data_set.corpora.values()) <= {file.name for file in data_set.files}
        assert all(len(file.sha256) == 64 and file.bytes > 0 for file in data_set.files)
        assert all(f"/{data_set.commit}/" in file.url or "github" in file.url for file in data_set.files if file.url)


def of(stored, **fields):
    file = sets.SetFile("a.txt", len(stored), hashlib.sha256(stored).hexdigest(), "address", None)
    return replace(sets.SETS["sst2"], name="own", files=(replace(file, **fields),))


def test_fetch_checks_and_writes_only_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sets.SETS, "own", of(b"text"))
    asked = []
    assert sets.fetch("own", tmp_path, lambda url: asked.append(url) or b"text") == [tmp_path / "own" / "a.txt"]
    assert (tmp_path / "own" / "a.txt").read_bytes() == b"text"
    assert sets.fetch("own", tmp_path, lambda url: asked.append(url) or b"text") == []
    assert asked == ["address"]


def test_another_content_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sets.SETS, "own", of(b"text"))
    with pytest.raises(DataError, match="sha256"):
        sets.fetch("own", tmp_path, lambda url: b"test")
    assert not list(tmp_path.rglob("*.txt"))


def test_other_compression_of_the_same_content_is_accepted(tmp_path, monkeypatch):
    content = hashlib.sha256(b"text").hexdigest()
    monkeypatch.setitem(sets.SETS, "own", of(b"ours", name="a.gz", content=content))
    sets.fetch("own", tmp_path, lambda url: gzip.compress(b"text"))
    assert gzip.decompress((tmp_path / "own" / "a.gz").read_bytes()) == b"text"


def test_what_needs_a_conversion_is_described_and_nothing_is_written(tmp_path):
    def no_network(url):
        raise AssertionError(url)

    with pytest.raises(DataError, match=r"eltec-novels: .*cannot be fetched as is.*TEI"):
        sets.fetch("eltec-novels", tmp_path, no_network)
    with pytest.raises(UsageError, match="no data set is named"):
        sets.fetch("nope", tmp_path, no_network)
    assert not list(tmp_path.iterdir())
