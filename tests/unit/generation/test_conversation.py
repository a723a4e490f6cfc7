"""A conversation: the system's text first, a stopped answer as the reader saw it, and all of it forgotten again."""

import pytest

from orrery.generation.conversation import Conversation
from orrery.generation.row import Generation

SYSTEM, ASKED = {"role": "system", "content": "Be short."}, {"role": "user", "content": "Why?"}


def reply(messages, show):
    for piece in ("Be", "cause."):
        show(piece)
    return Generation([1, 2], "Because.", "end", 1.0)


@pytest.mark.parametrize(("system", "opening"), [(None, []), ("Be short.", [SYSTEM])])
def test_the_text_of_the_system_comes_first_and_outlives_a_reset(system, opening):
    shown = []
    conversation = Conversation(reply, system)
    assert conversation.messages == opening
    conversation.ask("Why?", shown.append)
    assert conversation.messages == [*opening, ASKED, {"role": "assistant", "content": "Because."}]
    assert shown == ["Be", "cause."]
    conversation.reset()
    assert conversation.messages == opening


def test_a_stopped_answer_is_part_of_the_conversation_as_far_as_it_was_shown():
    def stopped(messages, show):
        show("Bec")
        show("au")
        raise KeyboardInterrupt

    conversation = Conversation(stopped)
    assert conversation.ask("Why?", lambda piece: None) is None
    assert conversation.messages == [ASKED, {"role": "assistant", "content": "Becau"}]
