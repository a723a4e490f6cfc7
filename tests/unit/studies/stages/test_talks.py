"""What counts as keeping the format of a chat."""

from orrery.data.rows.conversations import Conversation
from orrery.studies.stages.talks import Talk, TalkAnswer, leaks_role, user_turns


def said(*texts: str) -> Conversation:
    roles = ("user", "assistant")
    return Conversation("x:1", tuple({"role": roles[n % 2], "content": text} for n, text in enumerate(texts)))


def test_a_line_that_begins_a_turn_leaks() -> None:
    for text in ("user", "fine\nuser\nhello", "Assistant: yes", "a\n Human: b", "<|user|>\nx", "system:"):
        assert leaks_role(text), text
    for text in ("The user is here.", "Users: two", "an assistant", "", "I am your assistant: ask me"):
        assert not leaks_role(text), text


def test_turns_go_on_with_those_behind() -> None:
    talks = [said("a", "1", "b", "2"), said("c", "3"), said("d", "4", "e", "5", "f", "6")]
    assert user_turns(talks, 3, 4) == [["a", "b", "c", "d"], ["c", "d", "e", "f"], ["d", "e", "f", "a"]]
    assert user_turns(talks, 1, 2) == [["a", "b"]]


def test_a_conversation_keeps_the_format_where_every_turn_does() -> None:
    good, cut, leaked = (
        TalkAnswer("a", 2, True, False),
        TalkAnswer("a", 2, False, False),
        TalkAnswer("user", 2, True, True),
    )
    assert Talk(["x", "y"], answers=[good, good]).kept
    assert not Talk(["x", "y"], answers=[good]).kept
    assert not Talk(["x", "y"], answers=[good, cut]).kept
    assert not Talk(["x"], answers=[leaked]).kept
