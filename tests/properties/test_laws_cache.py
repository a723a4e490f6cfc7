"""The law of the cache over random sessions: start, step, select, join, truncate, in any order."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.laws.models import VOCABULARY, tiny
from orrery.laws.transcript import Transcript
from orrery.nn.cache.kinds import growing, static
from properties.representatives import DECODERS

CAPACITY = 24
KINDS = {"growing": growing, "static": static}
tokens = st.integers(0, VOCABULARY - 1)
prompts = st.lists(st.lists(tokens, min_size=1, max_size=6), min_size=1, max_size=3)


def step(session, data):
    """Tell each row up to four tokens, as many as fit, and at least one row one token."""
    room = [CAPACITY - len(row) for row in session.rows]
    rows = [data.draw(st.lists(tokens, max_size=min(4, left))) for left in room]
    if any(rows):
        session.step(rows)


def select(session, data):
    session.select(data.draw(st.lists(st.integers(0, len(session.rows) - 1), min_size=1, max_size=4)))


def truncate(session, data):
    session.truncate([data.draw(st.integers(1, len(row) + 2)) for row in session.rows])


@pytest.mark.parametrize("family", DECODERS)
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@torch.no_grad()
def test_any_session_equals_full_forwards(family, kind, data):
    def start():
        rows = data.draw(prompts)
        return Transcript.start(tiny(family), rows, KINDS[kind](len(rows), CAPACITY))

    def join(session, data):
        if len(session.rows) < 5:
            session.join(start())

    session = start()
    operations = st.sampled_from([step, step, select, join, truncate])
    for operation in data.draw(st.lists(operations, max_size=6)):
        operation(session, data)
        assert list(session.session.lengths) == [len(row) for row in session.rows]
    assert session.worst < 1e-9
