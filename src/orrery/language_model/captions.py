"""Captions: what a model that sees writes for each of several pictures."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.generation.batched import in_batches
from orrery.language_model.pictures import images_of, reads_pictures
from orrery.language_model.sources import several_pictures
from orrery.language_model.texts import spell_answer
from orrery.language_model.written import answers, said_by_files

NEEDED = "load one of the family vision-encoder-decoder or blip"
USUAL: Mapping[str, Any] = {"max_new_tokens": 256}
"""What holds of a caption where nobody says anything, as in the image-to-text pipeline of transformers 4."""


def captions(
    stored: Stored,
    given: Any,
    *,
    num_beams: int | None = None,
    length_penalty: float | int | None = None,
    max_new_tokens: int | None = None,
    batch_size: int = 8,
    done: Callable[[int], None] | None = None,
) -> list[str]:
    """Return the caption of each picture; see ``LanguageModel.caption``."""
    if not writes_captions(stored):
        raise UsageError("only a model that reads pictures and writes beside them captions", NEEDED)
    rows = [image[None] for one in several_pictures(given) for image in images_of(stored, one)]
    asked = {"num_beams": num_beams, "length_penalty": length_penalty, "max_new_tokens": max_new_tokens}
    said = usual_settings(said_by_files(stored), asked)

    def answer(numbers: list[int]) -> Sequence[str]:
        found = answers(stored, [rows[number] for number in numbers], said, None, ())
        return [spell_answer(stored, one[0]) for one in found]

    return in_batches([1] * len(rows), batch_size, answer, done)


def writes_captions(stored: Stored) -> bool:
    """Say whether a model reads pictures, and writes what they show."""
    return reads_pictures(stored) is not None and stored.model.spec.writes


def usual_settings(files: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return how captions are written: as is asked, else as the model's files say, else as ``USUAL`` says."""
    said = {**files, **{key: value for key, value in asked.items() if value is not None}}
    usual = {} if "max_length" in said else USUAL
    return {**usual, **said}
