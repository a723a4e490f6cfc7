import pytest

from orrery.serving import responses
from orrery.serving.errors import ApiError
from orrery.serving.responses import ResponseInputs, Responses


def answer(tokens, adapter=None):
    return ResponseInputs(tuple(range(tokens - 1)), (7,), (), adapter)


def test_answers_are_found_by_the_id_and_the_number_that_clients_see():
    held = Responses()
    held.begin("12ab")
    held.add("12ab", 1, answer(3))
    assert held.find("chatcmpl-12ab", 1) == answer(3)
    with pytest.raises(ApiError, match="no answer 0 that has come to its end"):
        held.find("chatcmpl-12ab")


def test_the_oldest_are_forgotten_beyond_a_number_of_responses(monkeypatch):
    monkeypatch.setattr(responses, "MOST", 3)
    held = Responses()
    for id in "abcd":
        held.begin(id)
        held.add(id, 0, answer(2))
    held.add("a", 0, answer(2))  # an answer that ends after its response is forgotten
    with pytest.raises(ApiError, match="not remembered"):
        held.find("a")
    assert [held.find(id) for id in "bcd"] == [answer(2)] * 3


def test_the_oldest_are_forgotten_beyond_a_number_of_tokens(monkeypatch):
    monkeypatch.setattr(responses, "MOST_TOKENS", 10)
    held = Responses()
    for id, tokens in (("a", 4), ("b", 5), ("c", 3), ("d", 50)):
        held.begin(id)
        held.add(id, 0, answer(tokens))
        if id == "c":
            assert held.find("b") == answer(5)
            with pytest.raises(ApiError):
                held.find("a")
    assert held.find("d") == answer(50)  # the newest stays, however long
    with pytest.raises(ApiError):
        held.find("c")


def test_an_answer_of_an_adapter_is_refused():
    held = Responses()
    held.begin("a")
    held.add("a", 0, answer(2, "poet"))
    with pytest.raises(ApiError, match="the adapter 'poet' wrote this answer"):
        held.find("a")
