import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.generation.answer_text import AnswerText


class Pieces:
    """A decoder whose tokens are places in a list of pieces."""

    def __init__(self, pieces, rest=""):
        self.pieces, self.rest = pieces, rest

    def push(self, id):
        return self.pieces[id]

    def finish(self):
        return self.rest


def write(pieces, stop, rest=""):
    shown = []
    writer = AnswerText(Pieces(pieces, rest), stop, shown.append)
    stopped = any(writer.push(id) for id in range(len(pieces))) or writer.finish()
    assert "".join(shown) == writer.text
    assert all(shown)
    return writer.text, stopped


@given(
    st.lists(st.text("ab", max_size=4), max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
)
def test_the_text_ends_before_the_first_stop_string_wherever_pieces_end(pieces, stop):
    text, stopped = write(pieces, stop)
    seen = ""
    for piece in pieces:
        seen += piece
        places = [seen.find(s) for s in stop if s in seen]
        if places:
            assert (text, stopped) == (seen[: min(places)], True)
            return
    assert (text, stopped) == (seen, False)


def test_a_stop_string_across_token_borders():
    assert write(["Hello\n", "Us", "er", ": hi"], ["\nUser:"]) == ("Hello", True)


def test_what_was_held_back_is_shown_at_the_end():
    assert write(["Hello\n", "Us"], ["\nUser:"], rest="!") == ("Hello\nUs!", False)


def test_what_the_decoder_held_back_may_complete_a_stop_string():
    assert write(["Hello\n", "Us"], ["\nUser:"], rest="er:") == ("Hello", True)


def test_an_empty_stop_string_is_refused():
    with pytest.raises(UsageError, match="empty stop"):
        AnswerText(Pieces([]), [""])
