"""`documents: lines`: each line that is not blank is a document, with an end token before and behind it."""

from pathlib import Path

import numpy as np

from orrery.data.sources import BatchRequest
from orrery.data.sources.text import TextSettings, TextSource
from tiny_models import TOKENIZER


def test_lines_are_documents_with_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("the cat\n\n  \nthe dog sat\r\n")
    source = TextSource.read(TextSettings(train=str(file), documents="lines", val=str(file)))
    (portion,) = source.portions
    assert [(one.name, one.text) for one in portion.documents] == [
        ("text.txt:1", "the cat"), ("text.txt:4", "the dog sat\r"),
    ]  # fmt: skip
    assert len(source.held_back) == 2
    whole = TextSource.read(TextSettings(train=str(file)))
    assert len(whole.portions[0].documents) == 1


def test_an_end_token_stands_between_lines(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("the cat\n" * 50)
    source = TextSource.read(TextSettings(train=str(file), documents="lines"))
    request = BatchRequest(kind="crops", length=16, size=4, seed=1, tokenizer=TOKENIZER)
    ids = np.asarray(source.examples(request).train.batch(0)["ids"])
    assert (ids == TOKENIZER.special("end")).any(1).all()
