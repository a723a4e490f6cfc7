"""The documentation of the families comes out of their files: every docstring has the form that the pages need."""

import importlib.util
import re
from pathlib import Path

import pytest

from orrery.families import names

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def pages():
    found_spec = importlib.util.spec_from_file_location("family_pages", ROOT / "docs" / "_families.py")
    module = importlib.util.module_from_spec(found_spec)
    found_spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("family", names())
def test_a_family_says_its_name_its_paper_and_what_is_peculiar_to_it(pages, family):
    page = pages.read(family)
    assert page.title
    assert re.search(r"\d{4}", page.papers)
    assert page.assembly in pages.ASSEMBLIES.values()
    text = pages.page(page)
    assert text.startswith("# ")
    for part in ("Peculiar to it", "## Its parts", "## Keys of config.json", page.assembly):
        assert part in text
    assert not re.search(r"(?<!`)``(?!`)", text)


def test_the_index_has_a_row_a_family(pages):
    read_pages = [pages.read(family) for family in names()]
    text = pages.index(read_pages)
    assert text.count("\n| [") == len(names())
    assert (
        "| [GPT-2](gpt2.md) | `gpt2` | Radford et al. 2019 | the pre-LN decoder with learned positions | decoder |"
        in text
    )


def test_another_form_is_refused(pages, monkeypatch):
    monkeypatch.setattr(pages, "getdoc", lambda module: "A family.\n\nIt is nice.")
    with pytest.raises(ValueError, match="its docstring is not"):
        pages.read("gpt2")


def test_pages_of_families_that_are_gone_go_too(pages, monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "FOLDER", tmp_path / "families")
    monkeypatch.setattr(pages, "names", lambda: ["gpt2", "t5"])
    pages.write()
    (tmp_path / "families" / "gone.md").write_text("x")
    before = (tmp_path / "families" / "gpt2.md").stat().st_mtime_ns
    pages.write()
    assert sorted(path.name for path in (tmp_path / "families").iterdir()) == ["gpt2.md", "index.md", "t5.md"]
    assert (tmp_path / "families" / "gpt2.md").stat().st_mtime_ns == before
