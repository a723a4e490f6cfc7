"""How a page was made: the command line with what the environment changed, or the text of the call."""

import linecache
from datetime import date

import pytest

import orrery
from orrery.cli.program import run
from orrery.reports.making import CALL, COMMAND, carrying_out, made

ENTERED = "def enter(*words, **more):\n    from orrery.reports.making import made\n    return made()\n"


def package(name="orrery.made_up"):
    """Return a function as if of a module of the program."""
    space = {"__name__": name}
    exec(ENTERED, space)
    return space["enter"]


def called_from(text):
    """Return how a page was made by a program of a file with this text, which calls ``enter``."""
    file = "<a notebook>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"__name__": "__main__", "enter": package()}
    try:
        exec(compile(text, file, "exec"), space)
    finally:
        del linecache.cache[file]
    return space["found"]


def test_a_command_is_told_as_a_shell_takes_it(monkeypatch):
    monkeypatch.setenv("ORRERY_TRAINING__STEPS", "5 6")
    monkeypatch.setenv("ORRERY_API_KEY", "secret")
    with carrying_out(["demo", "--data.train", "my notes"]):
        said = made()
    assert said.lead == COMMAND
    assert said.words == "ORRERY_TRAINING__STEPS='5 6' orrery demo --data.train 'my notes'"
    assert said.day == date.today().isoformat()
    assert said.versions[0] == ("Orrery", orrery.__version__)
    assert [name for name, _ in said.versions] == ["Orrery", "torch", "Python"]


def test_the_program_tells_its_command_and_forgets_it(monkeypatch):
    seen = []
    monkeypatch.setattr("orrery.cli.program.overview", lambda rows: seen.append(made().words) or "")
    assert run(["--help"]) == 0
    assert seen == ["orrery --help"]
    assert made().lead == CALL


def test_the_command_that_made_the_numbers_goes_before_the_one_that_writes():
    with carrying_out(["lab", "--report"]):
        assert made("orrery lab --all").words == "orrery lab --all"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("found = enter('notes', steps=5)", "enter('notes', steps=5)"),
        ("if True:\n    found = enter(  # of all\n        'ä',\n    )", "enter(  # of all\n    'ä',\n)"),
        ("ä = 1; found = [enter(ä)][0]", "enter(ä)"),
    ],
)
def test_a_call_is_told_as_it_stands(text, words):
    said = called_from(text)
    assert (said.lead, said.words) == (CALL, words)


def test_a_call_that_no_file_has_is_named():
    space = {"__name__": "__main__", "enter": package("orrery.studies.made_up")}
    exec("found = enter(1)", space)
    assert space["found"].words == "orrery.studies.made_up.enter(...)"
