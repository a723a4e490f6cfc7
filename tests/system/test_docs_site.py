"""The documentation as a site: a picture on every guide, and a workflow that publishes what is built."""

import re

import pytest
import yaml

from orrery.cli.program import VERBS
from pages import DOCS, ROOT, module, prose, text_of

GUIDES = re.search(r":caption: Use it\n.*?\n\n(.*?)```", text_of("index"), re.DOTALL)
WORKFLOW = ROOT / ".github/workflows/docs.yml"
PICTURE = re.compile(r"^```\{(flow|interactive|live)\}|!\[.+\]\(.+\)|^\w+_(chart|map)\(|^scatter\(", re.MULTILINE)


@pytest.mark.parametrize("guide", GUIDES[1].split() if GUIDES else [])
def test_every_guide_has_a_picture(guide: str) -> None:
    assert PICTURE.search(text_of(guide))


def test_there_are_guides_and_a_page_without_a_picture_is_found() -> None:
    assert GUIDES is not None
    assert len(GUIDES[1].split()) > 35
    assert PICTURE.search(re.sub(r"```\{flow\}.*?```", "", text_of("chat"), flags=re.DOTALL)) is None


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_the_boxes_of_a_picture_have_room_and_name_verbs_of_the_program(page) -> None:
    flow = module("_flow")
    for block in re.findall(
        r"^```\{flow\} [^\n]+\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        drawn = flow.boxes(block.splitlines())
        assert 2 <= len(drawn) <= 4
        assert all(box.lines for box in drawn)
        for verb in re.findall(r"\borrery (?!with\b)(\w+)", block):
            assert verb in VERBS


def test_a_text_that_is_too_long_for_a_box_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than the 32 letters"):
        module("_flow").boxes([f"name: {'long ' * 8}"])


FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![`$])\$([^$`\n]+?)\$(?![`$])", re.DOTALL)


@pytest.mark.parametrize("page", ["evaluation", "pipelines", "pretraining", "scores"])
def test_every_formula_is_drawn_by_the_browser_itself(page: str) -> None:
    found = [alone or within for alone, within in FORMULA.findall(prose(text_of(page)))]
    assert found
    assert all(module("_math").tex2mathml(one).startswith("<math") for one in found)
    assert 'html_math_renderer = "mathml"' in (DOCS / "conf.py").read_text(encoding="utf-8")


def test_the_workflow_publishes_what_make_docs_builds() -> None:
    told = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    build, publish = told["jobs"]["build"], told["jobs"]["publish"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    runs = [step["run"] for step in build["steps"] if "run" in step]
    assert runs == ["make docs"]
    assert "docs: $(TEST)" in makefile
    (uploaded,) = [step["with"]["path"] for step in build["steps"] if "upload-pages-artifact" in step.get("uses", "")]
    assert f"docs {uploaded}" in makefile
    assert publish["needs"] == "build"
    assert set(publish["permissions"]) == {"pages", "id-token"}
    assert "pull_request" in publish["if"]
