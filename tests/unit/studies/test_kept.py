"""What a study leaves: who may begin in its folder, who may go on, what is done once, and what is written."""

import json
from types import SimpleNamespace

import pytest

from orrery.checkpoints.lock import NAME as LOCK
from orrery.errors import UsageError
from orrery.studies.kept import ELSEWHERE, TOKENIZER, Kept, as_json, held, once

RESULT = "comparison.json"
PART = f"{RESULT}.tmp-12"
GO_ON = "add --resume to go on with it, or choose another folder"


def opened(folder, resume):
    return held(folder, lambda: Kept(folder, "comparison", "comparison").refuse_others(resume))


@pytest.mark.parametrize(
    ("names", "again", "resumed"),
    [
        ((), None, None),
        ((LOCK,), None, None),
        ((RESULT, "lstm"), GO_ON, None),
        ((TOKENIZER,), GO_ON, None),
        ((PART,), GO_ON, None),
        ((TOKENIZER, ".orrery-7", PART), GO_ON, None),
        (("thesis.tex",), ELSEWHERE, ELSEWHERE),
        ((TOKENIZER, "thesis.tex"), ELSEWHERE, ELSEWHERE),
        (("comparison.json.bak",), ELSEWHERE, ELSEWHERE),
    ],
)
def test_only_what_a_call_before_left_is_gone_on_with(names, again, resumed, tmp_path):
    for name in names:
        (tmp_path / name).touch()
    for resume, hint in ((False, again), (True, resumed)):
        if hint is None:
            with opened(tmp_path, resume):
                assert (tmp_path / LOCK).exists()
            continue
        with pytest.raises(UsageError) as refused, opened(tmp_path, resume):
            pass
        assert refused.value.hint.startswith(hint)
        assert refused.value.message.startswith(f"{tmp_path} is not empty: it has {sorted(names)[0]}")
        assert refused.value.message.endswith("and no comparison") is (hint == ELSEWHERE)


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="is a file") as refused, opened(file, True):
        pass
    assert refused.value.hint == ELSEWHERE


def test_a_key_that_changed_is_named_with_both_values(tmp_path):
    kept = Kept(tmp_path, "comparison", "comparison")
    read = lambda values: SimpleNamespace(settings=values["settings"])  # noqa: E731
    assert kept.earlier(read, {"seeds": [1]}) is None
    kept.note({"settings": {"training": {"steps": 5}, "seeds": [1]}})
    assert kept.earlier(read, {"training": {"steps": 5}, "seeds": [1, 2]}, growing=("seeds",)) is not None
    with pytest.raises(UsageError) as refused:
        kept.earlier(read, {"training": {"steps": 6}, "seeds": [1]})
    assert refused.value.message == "--resume: training.steps was 5 and is now 6"
    assert refused.value.hint == f"take the old value, or {ELSEWHERE}"


def test_work_is_done_once_kept_before_it_is_told_and_not_told_where_a_signal_stopped_it():
    seen = []

    def keep(outcome):
        seen.append(f"kept {outcome}")
        return outcome

    for done, result in ((False, "a loss"), (True, "a loss"), (False, 15)):
        seen.append(once("a size", done, lambda result=result: result, keep, seen.append))
    assert seen == ["kept a loss", "a size: a loss", None, "a size: done before", None, 15]


def test_names_that_are_no_utf_8_can_be_written_and_read(tmp_path):
    values = {"text": "Größe", "source": "data\udcff.txt"}
    Kept(tmp_path, "report", "report").leave(values, "<p>", {"loss": "<svg>"})
    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert text == as_json(values)
    assert "Größe" in text
    assert json.loads(text) == values
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loss.svg", "report.html", "report.json"]


def test_a_study_of_several_processes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(UsageError, match="runs in one process") as fault, opened(tmp_path, False):
        raise AssertionError("it has begun")
    assert "torchrun" in fault.value.hint
    assert not [*tmp_path.iterdir()]
