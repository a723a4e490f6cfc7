"""Reasoning in a streamed answer: apart from what is said, however the text is cut."""

import pytest

from orrery.text.chat.reasoning import Reasoning, ReasoningWatch

MARKS = ("<think>", "</think>")
ANSWERS = {
    "reasoning and an answer": (False, "<think>\nwhy\n\nnot\n</think>\n\nSo be it.", "why\n\nnot", "So be it."),
    "blanks before the mark": (False, " \n<think>a</think>b", "a", "b"),
    "no reasoning": (False, "So <think> is a mark.", "", "So <think> is a mark."),
    "blanks before an answer": (False, "\n So", "", "\n So"),
    "empty reasoning": (False, "<think>\n\n</think>\n\nSo", "", "So"),
    "begun in the prompt": (True, "\nwhy\n</think>\nSo", "why", "So"),
    "its end never comes": (True, "why </thin", "why </thin", ""),
    "a mark cut off": (False, "<thin", "", "<thin"),
    "a second mark is said": (False, "<think>a</think>b</think>c", "a", "b</think>c"),
    "marks inside": (True, "a < b </ c </think>d ", "a < b </ c", "d "),
    "nothing": (False, "", "", ""),
}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("kind", ANSWERS)
def test_the_pieces_joined_are_the_two_parts(kind, size):
    begun, text, thought, said = ANSWERS[kind]
    watch = ReasoningWatch(Reasoning(*MARKS, begun))
    pieces = [watch.push(text[place : place + size]) for place in range(0, len(text), size)]
    pieces.append(watch.finish())
    assert "".join(piece[0] for piece in pieces) == thought
    assert "".join(piece[1] for piece in pieces) == said
    assert watch.whole == (thought, said)


def test_what_is_certain_is_told_at_once():
    watch = ReasoningWatch(Reasoning(*MARKS))
    assert watch.push("<think>it rains") == ("it rains", "")
    assert watch.push(" <") == ("", "")
    assert watch.push("5") == (" <5", "")
    assert watch.push("</think>\nyes") == ("", "yes")
    assert watch.push(" it") == ("", " it")


def test_without_marks_all_is_said():
    watch = ReasoningWatch(None)
    assert watch.push("<think>a") == ("", "<think>a")
    assert watch.finish() == ("", "")
