"""The folder of many trainings: who may begin in it, who may go on, and who is sent elsewhere with what to do."""

import pytest

from orrery.checkpoints.lock import NAME as LOCK
from orrery.errors import UsageError
from orrery.studies.compare.folder import TOKENIZER, another_value, held_folder

RESULT = "comparison.json"
PART = f"{RESULT}.tmp-12"
ELSEWHERE, GO_ON = "choose another folder with --output", "add --resume to go on with it, or choose another folder"


@pytest.mark.parametrize(
    ("names", "fresh", "resumed"),
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
def test_only_what_a_call_before_left_is_gone_on_with(names, fresh, resumed, tmp_path):
    for name in names:
        (tmp_path / name).touch()
    for resume, hint in ((False, fresh), (True, resumed)):
        if hint is None:
            with held_folder(tmp_path, resume, RESULT, "comparison"):
                assert (tmp_path / LOCK).exists()
            continue
        with pytest.raises(UsageError) as refused, held_folder(tmp_path, resume, RESULT, "comparison"):
            pass
        assert refused.value.hint.startswith(hint)
        assert refused.value.message.startswith(f"{tmp_path} is not empty: it has {sorted(names)[0]}")
        assert refused.value.message.endswith("and no comparison") is (hint == ELSEWHERE)


def test_a_file_is_no_folder(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="is a file") as refused, held_folder(file, True, RESULT, "comparison"):
        pass
    assert refused.value.hint == ELSEWHERE


def test_a_key_that_changed_is_named_with_both_values():
    error = another_value("seeds", (1,), (2,))
    assert error.message == "--resume: seeds was (1,) and is now (2,)"
    assert "take the old value" in error.hint
