"""Embeddings: rows, neighbours, the plane of a map and analogies are those of the table."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject, find, shown
from orrery.page.views.embedding import nearest, table_of
from orrery.text.train import train_tokenizer
from views_toy import TEXT, subject_of

FAMILIES = ("gpt2", "llama", "bert", "albert", "t5", "transformer", "rnnsearch")
WORDS = train_tokenizer("word", [TEXT * 2] * 3, 30)


@pytest.fixture(scope="module")
def words():
    return subject_of("llama", WORDS, text="the cat sat on the mat")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_row_of_a_token_is_that_of_the_table_and_enters_the_stack(family):
    subject = subject_of(family)
    for place in (0, -1):
        id = int(subject.seen.first.ids[0, place])
        payload = shown("embedding", subject, {"token": id})
        assert torch.equal(payload.tensors["row"], table_of(subject.seen)[id].float())
        assert all(check.passed for check in payload.checks), payload.checks


def test_the_nearest_rows_have_the_greatest_cosines(words):
    table = table_of(words.seen)
    near = shown("embedding", words, {"token": 5}).facts["near"]
    cosine = torch.nn.functional.cosine_similarity(table, table[5][None])
    order = [id for id in cosine.argsort(descending=True).tolist() if id != 5]
    assert [one["id"] for one in near] == order[: len(near)]
    torch.testing.assert_close(torch.tensor([one["cosine"] for one in near]), cosine[order[: len(near)]])


def test_a_map_is_the_plane_of_the_largest_spread(words):
    payload = shown("embedding", words, {"map": "vocabulary"})
    table = table_of(words.seen).double()
    centred = table - table.mean(0)
    _, sizes, axes = torch.linalg.svd(centred, full_matrices=False)
    points = (centred @ axes[:2].T).abs()
    torch.testing.assert_close(payload.tensors["points"].double().abs(), points, rtol=1e-5, atol=1e-5)
    shares = (sizes[:2].square() / sizes.square().sum()).tolist()
    assert payload.facts["shares"] == pytest.approx(shares)
    assert len(payload.checks) == 2
    assert all(check.passed for check in payload.checks)
    text = shown("embedding", words, {"map": "text"})
    assert text.facts["ids"] == list(dict.fromkeys(words.seen.first.ids[0].tolist()))


def test_an_analogy_is_found_where_the_table_holds_one(words):
    inside = Inside(words.lm, words.seen.given)
    ids = {name: WORDS.encode(name)[0] for name in ("cat", "sat", "dog", "log")}
    table = table_of(inside)
    with torch.no_grad():
        kept = table.clone()
        for name, vector in (("cat", [1.0, 1.0]), ("sat", [1.0, 0.0]), ("dog", [0.0, 1.0]), ("log", [0.0, 0.01])):
            table[ids[name]] = 0
            table[ids[name], :2] = torch.tensor(vector)
        facts = shown("embedding", ViewSubject(words.lm, inside), {"analogy": "cat, sat, log"}).facts
        table.copy_(kept)
    assert [one["id"] for one in facts["given"]] == [ids["cat"], ids["sat"], ids["log"]]
    assert facts["near"][0]["id"] == ids["dog"]


def test_a_wrong_entry_is_seen(words):
    inside = Inside(words.lm, words.seen.given)
    values = {**inside.first.values, "embedded": inside.first["embedded"].roll(1, 1)}
    object.__setattr__(inside.first, "values", values)
    payload = shown("embedding", ViewSubject(words.lm, inside), {"token": 5})
    assert not payload.checks[0].passed


def test_nearest_to_nothing_is_no_error():
    ids, cosines = nearest(torch.eye(3), torch.zeros(3), 2)
    assert len(ids) == 2
    assert cosines == [0.0, 0.0]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"token": 99999}, "no token 99999"),
        ({"analogy": "cat,sat"}, "no analogy"),
        ({"analogy": "cat,sat,zebra"}, "no single token"),
        ({"map": "words"}, "map"),
    ],
)
def test_what_cannot_be_shown_is_refused(words, asked, says):
    with pytest.raises(UsageError, match=says):
        shown("embedding", words, asked)


def test_a_saved_page_holds_the_map_of_the_text_and_its_rows(words):
    saved = list(find("embedding").saved(words))
    assert saved[0].map == "text"
    assert [one.token for one in saved[1:]] == list(dict.fromkeys(words.seen.first.ids[0].tolist()))
