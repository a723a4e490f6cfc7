"""Every kind of error has its exit code, says what is wrong and what to do, and crosses to another process."""

import pickle
import re

import pytest

from orrery import errors
from pages import text_of

KINDS = {
    "the run failed": errors.RunError,
    "usage, recipe or configuration": errors.UsageError,
    "input data": errors.DataError,
    "model, tokenizer or checkpoint files": errors.ModelFileError,
    "the machine": errors.MachineError,
}


@pytest.mark.parametrize("what", KINDS)
def test_the_exit_code_is_the_one_that_the_quick_start_promises(what):
    promised = {
        name: int(code) for code, name in re.findall(r"^\| (\d) \| ([^|:]+?)(?::.*)? \|$", text_of("quickstart"), re.M)
    }
    assert KINDS[what]("it broke", "mend it").exit_code == promised[what]


def test_what_is_of_no_kind_is_a_run_that_failed():
    assert errors.OrreryError("it broke", "mend it").exit_code == errors.RunError.exit_code


def test_an_error_says_what_is_wrong_and_what_to_do():
    error = errors.DataError("a.txt: empty", "give a text")
    assert (error.message, error.hint) == ("a.txt: empty", "give a text")
    assert str(error) == "a.txt: empty (hint: give a text)"


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_in_another_process(kind):
    error = pickle.loads(pickle.dumps(kind("it broke", "mend it")))
    assert (type(error), error.message, error.hint) == (kind, "it broke", "mend it")
