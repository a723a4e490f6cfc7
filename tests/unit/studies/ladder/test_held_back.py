"""Which documents the loss of a ladder is measured on."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.data.documents import Portion
from orrery.data.records import Document
from orrery.data.sources.text import TextSource
from orrery.errors import RunError
from orrery.recipes.config import Recipe
from orrery.studies.compare.texts import Texts
from orrery.studies.kept import Kept
from orrery.studies.ladder.findings import LadderFindings
from orrery.studies.ladder.run import LadderInProgress, held_back, shortened
from orrery.studies.ladder.settings import Ladder
from orrery.studies.ladder.sizes import LadderSize
from orrery.studies.training import Training
from orrery.training.progress import Silent
from stand_ins import stand_in
from tiny_models import TOKENIZER


def texts(*lengths: int) -> Texts:
    """Return held-back documents of so many characters, a token each, and one that ends them."""
    documents = [Document(str(number), "e" * length) for number, length in enumerate(lengths)]
    source = TextSource([Portion("all", 1.0, [Document("train", "e")])], documents)
    ids = [np.zeros(length + 1, np.uint32) for length in lengths]
    return Texts(source, TOKENIZER, [], ids, source)


@pytest.mark.parametrize(
    ("lengths", "asked", "chosen"),
    [
        ([9] * 8, 20, [10, 10]),  # every fourth
        ([9] * 8, 1_000_000, [10] * 8),
        ([0, 9, 9, 0, 9], 1, [10]),  # an empty one says nothing
        ([1, 999, 1, 999], 1_000, [2, 1_000, 2, 1_000]),  # every second alone would be four tokens
    ],
)
def test_documents_at_even_distances_have_about_as_many_tokens_as_asked(lengths, asked, chosen):
    text_held_back = held_back(texts(*lengths), asked)
    assert [len(ids) for ids in text_held_back.ids] == chosen
    assert text_held_back.bytes == sum(length - 1 for length in chosen)


def test_the_speed_is_measured_with_a_document_that_has_text():
    assert [document.name for document in shortened(texts(0, 9, 9).source).held_back] == ["1"]


@pytest.fixture
def measured():
    """What a training of a size is measured with, where its model needs so many bits a token."""

    def measure(bits):
        asked = stand_in(Ladder, settings=SimpleNamespace(held_back=20))
        work = LadderInProgress(
            asked, stand_in(Kept), texts(*[9] * 8), stand_in(LadderFindings), print, lambda *said: Silent()
        )
        training = stand_in(Training, bits_per_byte=lambda ids, size: bits)
        return work._measured(training, LadderSize(stand_in(Recipe), 640, 1e9), 3, 1.23456)

    return measure


def test_bits_a_byte_are_those_of_the_tokens_over_the_bytes_of_the_same_documents(measured):
    ladder_run = measured(2.5)
    assert ladder_run.loss == pytest.approx(2.5 * math.log(2))
    assert ladder_run.bits_per_byte == pytest.approx(2.5 * 20 / 18)  # twenty tokens, of which two end documents
    assert (ladder_run.parameters, ladder_run.seed, ladder_run.seconds) == (640, 3, 1.235)


@pytest.mark.parametrize("bits", [math.inf, math.nan, 0.0])
def test_a_loss_that_is_no_number_ends_the_ladder(measured, bits):
    with pytest.raises(RunError, match=f"640 parameters, seed 3: the loss of the text held back is {bits:g}") as error:
        measured(bits)
    assert error.value.hint == "give a lower training.optimizer.rate, and another folder with --output"
