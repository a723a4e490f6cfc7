import json

from orrery.data.batches.padding import pad, truncate, word_vocabulary
from orrery.data.corpora import Document
from orrery.data.splits import split_documents, split_tail


def test_whole_documents_are_held_back_by_name_alone():
    documents = [Document(f"name{number}", str(number)) for number in range(4000)]
    train, validation = split_documents(documents)
    assert sorted(train + validation, key=documents.index) == documents
    assert 150 < len(validation) < 250
    assert split_documents(reversed(documents))[1] == validation[::-1]


def test_tiny_shakespeare_is_split_as_by_convention():
    train, validation = split_tail("x" * 1_115_394)
    assert (len(train), len(validation)) == (1_003_854, 111_540)


def test_padding_example_of_the_course(data_set):
    """G11 of deck S3: all eight rows, and the 57 words of the vocabulary."""
    slide = json.loads(data_set("course-slides/slides.json").read_text(encoding="utf-8"))["G11_padding"]
    rows = truncate(slide["sentences"], slide["block"])
    vocabulary = word_vocabulary(rows)
    assert pad(rows, vocabulary, slide["block"]) == slide["ids"]
    assert len(vocabulary) == 57
    assert vocabulary.items() >= slide["vocabulary_shown"].items()
    assert len(word_vocabulary(sentence.split() for sentence in slide["sentences"])) == 59
