import json

import pytest

from orrery.errors import DataError
from orrery.laws.exactness import recorded
from orrery.page.views._laws import laws_of, matrix, read_report, references, share
from orrery.page.views._view import ViewSubject, find, shown
from views_toy import subject_of


def check(name, law, family, value, bound, passed=True):
    return {"name": name, "law": law, "family": family, "passed": passed, "value": value, "bound": bound}


REPORT = {
    "checks": [
        check("a", "cache", "gpt2", 1e-7, 1e-5),
        check("b", "cache", "gpt2", 3e-10, 1e-9),
        check("c", "cache", "llama", 6e-6, 1e-5),
        check("d", "padding", "llama", 1e-12, 1e-9),
        check("e", "padding", "llama", None, 1e-9, passed=False),
        check("f", "golden", "", 27938, 27938),
        check("g", "checkpoint", "gpt2", 0, 0),
    ],
    "not_run": [{"name": "x", "reason": "r"}, {"name": "y", "reason": "r"}, {"name": "z", "reason": "s"}],
}


def cells(report):
    return {(cell["family"], cell["law"]): cell for cell in matrix(report)["cells"]}


def test_a_cell_has_the_check_that_is_nearest_to_its_bound():
    by_pair = cells(REPORT)
    # The one of 3e-10 takes a third of its bound; the larger number of 1e-7 a hundredth.
    assert by_pair["gpt2", "cache"] == {
        "family": "gpt2", "law": "cache", "state": "holds", "count": 2, "failed": 0,
        "name": "b", "value": 3e-10, "bound": 1e-9,
    }  # fmt: skip
    assert by_pair["llama", "cache"]["state"] == "near"
    assert (by_pair["llama", "padding"]["state"], by_pair["llama", "padding"]["failed"]) == ("fails", 1)
    assert by_pair["llama", "padding"]["name"] == "e"
    assert by_pair["", "golden"]["state"] == "holds"
    assert by_pair["gpt2", "checkpoint"]["state"] == "holds"
    assert sum(cell["count"] for cell in by_pair.values()) == len(REPORT["checks"])


def test_rows_columns_and_what_was_not_run():
    table = matrix(REPORT)
    assert table["families"] == ["", "gpt2", "llama"]
    assert table["laws"] == ["cache", "padding", "golden", "checkpoint"]
    assert table["not_run"] == [{"reason": "r", "names": ["x", "y"]}, {"reason": "s", "names": ["z"]}]


def test_both_columns_stand_beside_the_laws_of_each_family():
    compared = matrix(REPORT)["references"]
    assert [row["family"] for row in compared["rows"]] == ["gpt2", "llama"]
    llama, one = compared["rows"][1], recorded()["llama"]
    assert (llama["widened"], llama["installed"]) == (one.widened.logits, one.installed.logits)
    assert llama["by"].startswith("transformers ")
    mixtures = references({"mixtral", "lstm"})["rows"]
    assert [(row["family"], row["installed"], row["eager"] is None) for row in mixtures] == [
        ("lstm", None, True), ("mixtral", None, False),
    ]  # fmt: skip
    assert "transformers.integrations.moe._grouped_mm" in mixtures[1]["raises"]
    assert references({"", "of nobody"})["rows"] == []


def test_the_share_of_a_bound():
    assert share(check("a", "cache", "f", 5e-6, 1e-5)) == pytest.approx(0.5)
    assert share(check("a", "golden", "", 7, 7)) == 0
    assert share(check("a", "cache", "f", 0, 0)) == 0
    assert share(check("a", "golden", "", 7, 8, passed=False)) == float("inf")


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"checks": []}', '{"checks": [{"name": "a"}], "not_run": []}', '{"checks": 3, "not_run": []}'],
)
def test_a_file_of_something_else_is_refused(tmp_path, content):
    path = tmp_path / "laws.json"
    path.write_text(content)
    with pytest.raises(DataError) as error:
        read_report(path)
    assert "orrery verify --json" in error.value.hint
    with pytest.raises(DataError):
        read_report(tmp_path / "none.json")
    with path.open("wb") as stream:
        stream.truncate(2**25 + 1)  # read, it would fill the memory of a server
    with pytest.raises(DataError, match="has more than 33,554,432 bytes"):
        read_report(path)


def test_what_the_program_writes_is_read(tmp_path):
    from orrery.laws.registry import verify

    report = verify("elman_rnn").as_json()
    path = tmp_path / "laws.json"
    path.write_text(json.dumps(report))
    read = read_report(path)
    assert read["checks"] == report["checks"]
    subject = subject_of("gpt2")
    given = ViewSubject(subject.lm, subject.inside, path)
    payload = shown("laws", given, {})
    assert payload.facts["source"] == "laws.json"
    assert payload.facts["families"] == ["elman_rnn"]
    assert all(one.passed for one in payload.checks)
    assert not find("laws").fits(subject)


def test_the_file_that_is_given_comes_before_that_of_the_run(tmp_path):
    own, other = tmp_path / "laws.json", tmp_path / "other.json"
    assert laws_of(tmp_path, None) is None
    own.write_text("{}")
    assert laws_of(tmp_path, None) == own
    assert laws_of(tmp_path, other) is None
    other.write_text("{}")
    assert laws_of(tmp_path, other) == laws_of(None, other) == other
