"""Two parts of a text in a row: what they are, how often they follow each other, and how they are framed."""

import math

import pytest
import torch

from objectives_toy import tokenizer_of
from orrery.data.batches.sentence_pairs import SentencePairs, sentences
from orrery.data.records import Document
from orrery.data.sources import BatchRequest
from orrery.data.sources.text import PAIRS, TextSource
from orrery.errors import DataError, UsageError

BERT = tokenizer_of("bert")
CLS, SEP = BERT.special("class"), BERT.special("separator")
ROOM = 20
# Every token says where it stands: document d, place p is the id d * 50 + p.
DOCUMENTS = [[[50 * d + 3 * s + k for k in range(3)] for s in range(12)] for d in range(4)]


def pairs(documents=DOCUMENTS, size=400, length=ROOM + 3, swap=False, seed=0):
    label = "in_order" if swap else "follows"
    return SentencePairs(documents, BERT, length, size, seed, label=label, swap=swap)


def parts(batch):
    for ids, real, token_types in zip(batch["ids"], batch["real"], batch["token_types"], strict=True):
        row = ids[real].tolist()
        cut = row.index(SEP)
        assert (row[0], row[-1]) == (CLS, SEP)
        assert token_types[real].tolist() == [0] * (cut + 1) + [1] * (len(row) - cut - 1)
        assert not ids[~real].any()
        yield row[1:cut], row[cut + 1 : -1]


@pytest.mark.parametrize("swap", [False, True])
def test_the_label_says_whether_the_second_follows_the_first(swap):
    source = pairs(swap=swap)
    batches = [source.batch(step) for step in range(5)]
    labels = torch.cat([batch["in_order" if swap else "follows"] for batch in batches])
    assert abs(float(labels.double().mean()) - 0.5) < 5 * 0.5 / math.sqrt(len(labels))
    rows = [row for batch in batches for row in parts(batch)]
    for label, (first, second) in zip(labels.tolist(), rows, strict=True):
        assert first
        assert second
        assert len(first) + len(second) <= ROOM
        together = [*first, *second] if label or not swap else [*second, *first]
        if label or swap:
            assert together == list(range(together[0], together[0] + len(together)))
        else:
            assert first[0] // 50 != second[0] // 50
    assert {len(first) for first, _ in rows} >= {3, 6, 9, 12, 15}


def test_a_batch_is_a_function_of_seed_and_step():
    first, again, other, third = (pairs(seed=seed).batch(step) for seed, step in ((1, 3), (1, 3), (2, 3), (1, 4)))
    assert all(torch.equal(first[name], again[name]) for name in first)
    for each in (other, third):
        assert first["ids"].shape != each["ids"].shape or not torch.equal(first["ids"], each["ids"])


def test_every_run_is_visited_once_an_epoch():
    source = pairs(size=4)
    batches = [source.batch(step) for step in range(len(source.runs) // 4)]
    begun = [first[0] for batch in batches for first, _ in parts(batch)]
    assert sorted(begun) == sorted(source.documents[run.document][run.start][0] for run in source.runs)


def test_a_long_sentence_is_cut_and_one_alone_left_out():
    source = pairs([[list(range(3, 50))], [[60, 61], [62]], [[70]]], size=30)
    assert {run.document for run in source.runs} == {0, 1}
    assert max(len(ids) for parts_ in source.documents for ids in parts_) == ROOM // 2
    assert all(len(first) + len(second) <= ROOM for first, second in parts(source.batch(0)))


def test_sentences_end_where_they_end():
    text = "One two. Three? four!\nFive\n\n six 3.14 seven"
    split = sentences(BERT, [Document("a", text), Document("b", "\n")])
    assert [[BERT.decode(ids) for ids in document] for document in split] == [
        ["One two.", "Three?", "four!", "Five", "six 3.14 seven"],
        [],
    ]


def test_the_text_source_gives_what_it_says():
    text = " ".join(f"Sentence {number} of it." for number in range(30))
    documents = [Document(name, text) for name in "abc"]
    from orrery.data.documents import Portion

    source = TextSource([Portion("text", 1.0, documents)], documents[:2])
    for kind, label in PAIRS.items():
        examples = source.examples(BatchRequest(kind, 40, 5, 0, BERT))
        for batch in (examples.train.batch(0), examples.held_back.source.batch(0)):
            assert tuple(sorted(batch)) == tuple(sorted(TextSource.fields(kind)))
            assert label in batch
    mixed = TextSource(source.portions, [], mixed=True)
    with pytest.raises(UsageError, match="takes one corpus"):
        mixed.examples(BatchRequest("sentence_pairs", 40, 5, 0, BERT))


def test_too_little_text_is_refused():
    with pytest.raises(DataError, match="need two documents"):
        pairs(DOCUMENTS[:1])
    assert pairs(DOCUMENTS[:1], swap=True).runs
    with pytest.raises(DataError, match="need a document"):
        pairs([[[1]]], swap=True)
    with pytest.raises(UsageError, match="no room for two parts"):
        pairs(length=4)
