"""The screen of laws and badges in a real browser: cells against the file, a run in the background, what was seen."""

import json

import pytest

import orrery
from browser import Seen
from orrery.laws.exactness import recorded
from orrery.laws.registry import verify
from serving_toy import chat_model, running

pytestmark = pytest.mark.slow
TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    report = verify("llama").as_json()
    failing = {**report["checks"][0], "law": "padding", "passed": False, "value": 0.5, "name": "made up, and failing"}
    near = {**report["checks"][0], "law": "cache", "family": "made", "value": 9e-6, "bound": 1e-5, "name": "near"}
    path = tmp_path_factory.mktemp("laws") / "evidence.json"
    path.write_text(json.dumps({**report, "checks": [*report["checks"], failing, near]}))
    return path


@pytest.fixture(scope="module")
def toy(tmp_path_factory, evidence):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model"), "float32", laws=evidence) as server:
        yield server


@pytest.fixture
def seen(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22trust%22", "trust")
    yield visit
    visit.quiet()
    visit.close()
    toy.served.laws.report = None  # what one test checked again: the next one sees the file


def test_every_cell_has_its_worst_value_and_its_bound(seen, evidence):
    checks = json.loads(evidence.read_text())["checks"]
    for family in ("llama", "made"):
        for law in {check["law"] for check in checks if check["family"] == family}:
            own = [check for check in checks if (check["family"], check["law"]) == (family, law)]
            cell = seen.page.locator(f'.laws button[aria-label^="{family}, {law}:"]')
            told = cell.get_attribute("aria-label")
            failed = [check for check in own if not check["passed"]]
            near = [check for check in own if check["bound"] and (check["value"] or 0) / check["bound"] > 0.5]
            state = "fails" if failed else "near" if near else "holds"
            assert cell.get_attribute("data-state") == state
            assert {"holds": "holds", "near": "near its bound", "fails": "FAILS"}[state] in told
            assert f"worst of {len(own)}" in told
            assert {"holds": "●", "near": "▲", "fails": "✖"}[state] in cell.inner_text()
            if failed:
                assert "0.50, at most" in told
    assert "failed: 1. Cells near their bound: 1." in seen.page.locator("[data-summary]").inner_text()
    assert "Evidence: evidence.json" in seen.page.locator("[data-summary]").inner_text()
    assert "the tests of the engine run it" in seen.page.locator("details:has-text('Not run')").inner_html()


def test_a_cell_opens_the_checks_behind_it(seen):
    seen.click('.laws button[data-state="fails"]')
    seen.page.wait_for_selector("td:has-text('made up, and failing')")
    seen.page.check("input[name=only]")
    assert seen.page.locator(".laws button").count() == 2


def test_both_columns_of_the_reference_are_shown(seen):
    row = seen.page.locator("[data-references] tbody tr")
    one = recorded()["llama"]
    shown = row.inner_text().replace("\u2212", "-").split()  # the page writes a minus sign
    assert shown[0] == "llama"
    assert [float(number) for number in shown[-3:]] == [one.widened.logits, one.installed.logits, one.eager.logits]


def test_the_laws_of_the_model_are_checked_in_the_background(seen, toy):
    seen.click("[data-check=model]")
    seen.page.wait_for_selector("[data-running]")
    seen.page.wait_for_selector('[data-summary]:has-text("Evidence: llama")', timeout=120_000)
    assert "failed: 0." in seen.page.locator("[data-summary]").inner_text()
    measured = verify("llama").as_json()
    assert toy.served.laws.report["checks"] == measured["checks"]
    assert toy.served.laws.report["seconds"].keys() == measured["seconds"].keys()
    seen.click("[data-check=default]")
    seen.click("[data-check=nothing]")
    seen.page.wait_for_selector(".failure:has-text('stopped')")


def test_the_badges_of_what_was_seen_are_collected(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22").look(TEXT)
    visit.view("lens").view("attention")
    visit.click("[data-screen=trust]")
    visit.page.wait_for_selector("main[data-ready=trust]")
    assert visit.page.locator("[data-badge]").first.get_attribute("data-badge") == "attention"
    assert visit.page.locator("[data-badge=lens]").count() == 1
    assert "checks pass" in visit.page.locator("[data-badge=lens]").inner_text()
    visit.click("[data-badge=lens] button")
    visit.page.wait_for_selector('.view[data-view="lens"][data-ready]')
    visit.quiet()
    visit.close()


def test_a_saved_page_has_the_evidence_and_the_badges(browser, toy, evidence, tmp_path):
    file = orrery.see(toy.served.lm, TEXT, laws=evidence).save(tmp_path / "page.html")
    visit = Seen(browser).open(f"{file.as_uri()}#screen=%22trust%22", "trust")
    assert visit.page.locator('.laws button[data-state="fails"]').count() == 1
    visit.accessible()
    assert visit.said == []
    visit.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_a_small_window_shows_all(browser, toy, scheme):
    visit = Seen(browser, width=390, scheme=scheme).open(f"{toy.url}/#screen=%22trust%22", "trust")
    visit.click('.laws button[data-state="fails"]')
    visit.accessible()
    visit.narrow()
    visit.quiet()
    visit.close()
