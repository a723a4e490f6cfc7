"""The documentation fits the source: links, commands, the drawing of the layers, the names of what can be traced."""

import json
import re
import shlex
from pathlib import Path

import pytest

from orrery.cli.program import VERBS, build
from orrery.families import names
from orrery.laws import exactness
from orrery_course.course import every_item
from pages import DOCS, MADE, ROOT, commands, links, module, pages, prose, text_of


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_every_linked_file_exists(page: Path) -> None:
    missing = [target for target in links(page.read_text(encoding="utf-8")) if not _exists(page, target)]
    assert missing == []


def _exists(page: Path, target: str) -> bool:
    path = (page.parent / target).resolve()
    if path.is_relative_to(DOCS) and path.relative_to(DOCS).parts[0] in MADE:
        return True  # the build writes it, and refuses a link to what is not there
    return path.is_file()


def test_a_link_to_nothing_is_found() -> None:
    assert links("[a](../src/none.py), [b](https://x.org/y) and [c](tutorial.md#text)") == [
        "../src/none.py",
        "tutorial.md",
    ]
    assert not _exists(DOCS / "index.md", "../src/none.py")
    assert _exists(DOCS / "index.md", "tutorial.md")


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_no_section_is_empty(page: Path) -> None:
    assert _empty_sections(page.read_text(encoding="utf-8")) == []


def test_an_empty_section_is_found() -> None:
    assert _empty_sections("# a\n\n## b\n\n## c\n\n```\n# no heading\n```\n\n## d\n") == ["## b", "## d"]


def _empty_sections(text: str) -> list[str]:
    """Return the headings that nothing stands under before the next of their level or above."""
    empty, last, code = [], "", False
    for line in (*text.splitlines(), "# the end"):
        heading = not code and re.match(r"#+ ", line) is not None
        if heading and last and len(line.split()[0]) <= len(last.split()[0]):
            empty.append(last)
        code ^= line.startswith("```")
        last = line if heading else last if not line.strip() else ""
    return empty


def test_each_row_of_the_course_map_links_its_code_and_its_test() -> None:
    rows = [line.split(" | ") for line in text_of("course-map").splitlines() if line.startswith("| ")]
    items = [cells for cells in rows if len(cells) == 4 and cells[2] != "file"]
    assert len(items) > 50
    assert [cells[0] for cells in items if "](../src/" not in cells[2] or "](../tests/" not in cells[3]] == []
    shown = set(re.findall(r"\[(S\d [a-z0-9-]+)\]\(", text_of("course-map")))
    assert shown == {f"{item.deck} {item.name}" for item in every_item()}, "each lesson has its row"


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_every_command_of_a_page_is_one(page: Path) -> None:
    for line in commands(page.read_text(encoding="utf-8")):
        words = shlex.split(line, comments=True)[1:]
        stop = next((place for place, word in enumerate(words) if word in ("|", ">", "<")), len(words))
        build(words[:stop]).parse_args(words[:stop], exit_on_error=False, print_error=False)


def test_the_layers_are_those_of_the_contract_and_each_has_a_purpose() -> None:
    architecture = module("_architecture")
    rows = architecture.layers((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {path.parent.name for path in (ROOT / "src/orrery").glob("*/__init__.py")} | {"errors", "settings"}
    assert {name for row in rows for name in row} == packages
    drawn = architecture.drawing()
    assert all(f">{name}<" in drawn for name in packages)
    assert drawn.index(">cli<") < drawn.index(">nn<") < drawn.index(">errors<")


def test_a_package_without_a_purpose_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    architecture = module("_architecture")
    monkeypatch.setattr(architecture, "layers", lambda project: [["cli", "unheard_of"]])
    with pytest.raises(ValueError, match="unheard_of"):
        architecture.drawing()


def test_each_record_of_a_benchmark_has_a_table() -> None:
    benchmarks = module("_benchmarks")
    shown = benchmarks.page()
    for path in (ROOT / "benchmarks").glob("*.json"):
        assert f"## {path.stem}\n" in shown
    change = json.loads((ROOT / "benchmarks/quantisation.json").read_text())
    row = change.get("found", change)["kinds"]["int8"]
    assert f"| int8 | {row['bytes']:,} | {row['load_seconds']:.3f} |" in shown


def test_a_number_in_a_sentence_is_that_of_the_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    benchmarks = module("_benchmarks")
    monkeypatch.setattr(benchmarks, "BENCHMARKS", tmp_path)
    header = {"machine": {"processor": "one"}}
    (tmp_path / "training.json").write_text(json.dumps({"header": header, "found": {"ratio": 1.0449}}))
    (tmp_path / "training.two.json").write_text(json.dumps({"header": {"machine": {"processor": "two"}}, "found": {}}))
    assert benchmarks.recorded("f\"{training['ratio']:.2f}\"") == "1.04"
    assert benchmarks.recorded("', '.join(machines('training'))") == "one, two"


def test_an_unknown_record_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    benchmarks = module("_benchmarks")
    (tmp_path / "new.json").write_text("{}")
    monkeypatch.setattr(benchmarks, "BENCHMARKS", tmp_path)
    with pytest.raises(ValueError, match=r"new\.json has no table"):
        benchmarks.page()


def test_the_exactness_that_is_claimed_is_the_one_that_is_recorded() -> None:
    recorded = exactness.recorded()
    cast = max(one.cast.logits for one in recorded.values() if one.cast)
    bloom = recorded["bloom"].widened.logits
    others = max(one.widened.logits for name, one in recorded.items() if name != "bloom")
    page = " ".join(text_of("model-families").split())
    numbers = f"{recorded['bloom'].by} are widened: logits within {bloom:.1e} (BLOOM, whose reference cuts a constant; "
    assert f"{numbers}the others {others:.1e})" in page
    assert f"and is up to {cast:.1e} away" in page


def test_each_family_has_its_row_of_exactness() -> None:
    shown = module("_exactness").page()
    one = exactness.recorded()["llama"]
    cells = [f"{each.logits:.1e} ({each.gradients:.1e})" for each in (one.widened, one.installed, one.eager) if each]
    assert len(cells) == 3
    assert f"| `llama` | {one.by} | {one.configurations} | {' | '.join(cells)} |" in shown
    assert all(f"| `{family}` |" in shown for family in names())
    assert "| raises RuntimeError |" in shown


def test_every_name_that_a_trace_may_hold_is_explained() -> None:
    shown = re.findall(r"`([^`]+)`", prose(text_of("looking-inside")))
    explained = {part for name in shown for part in name.replace(",", " ").split()}
    explained = {name.rpartition(".")[2] for name in explained}
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/orrery").rglob("*.py"))
    tapped = set(re.findall(r'\b(?:ctx\.)?(?:tap|show)\((?:self, )?"([a-z_]+)"', source))
    assert len(tapped) > 20
    assert tapped - explained == set()


def test_the_glossary_has_the_letters_of_every_tensor_and_eighty_terms() -> None:
    glossary = text_of("glossary")
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/orrery").rglob("*.py"))
    suffixes = re.findall(r"\b[a-z]+_([A-Z][A-Z0-9]{0,5})\b", source)
    letters = sorted({letter for suffix in suffixes for letter in suffix if letter.isalpha()})
    assert [letter for letter in letters if f"| **{letter}** |" not in glossary] == []
    terms = re.findall(r"^(?! |:|`|#|\||$)(.+)\n  \S", glossary.partition("```{glossary}")[2], re.MULTILINE)
    assert len(terms) >= 80
    assert terms == list(dict.fromkeys(terms))


@pytest.mark.parametrize("page", ["tutorial", "generating", "looking-inside", "variants"])
def test_no_measured_number_is_typed_by_hand(page: str) -> None:
    assert re.findall(r"\d\.\d{3,}", re.sub(r"\{value\}`[^`]+`", "", prose(text_of(page)))) == []


def test_the_first_pages_are_short_and_the_verbs_of_the_readme_are_those_of_the_program() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lengths = {ROOT / "README.md": 150, ROOT / "CHANGELOG.md": 80, DOCS / "log.md": 60}
    assert [path for path, most in lengths.items() if len(path.read_text("utf-8").splitlines()) > most] == []
    verbs = re.findall(r"^\| `orrery (\w+)` \|", readme, re.MULTILINE)
    assert (len(verbs), [verb for verb in verbs if verb not in VERBS]) == (10, [])
    assert len(names()) > 100  # "more than a hundred model families"
    assert (ROOT / "docs/_static/page-attention.png").stat().st_size < 100_000
