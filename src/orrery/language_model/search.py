"""Searching for the answers of the greatest score, over several texts as one batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from orrery.errors import UsageError
from orrery.exchange.reading.generation_settings import Wishes
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import device_of, tokenizer_of, wishes, with_key, writer
from orrery.generation.batched import in_batches
from orrery.generation.diverse import diverse_beam_search
from orrery.generation.row import Limits
from orrery.generation.search import Hypothesis, LengthPenalty, Penalty, beam_search
from orrery.language_model.sources import Source, sources
from orrery.language_model.texts import Truncate, limits_of, line, spell_answer
from orrery.schema.writing import BEAMS, beams_of, refuse_with_beams
from orrery.text.languages import language_token, reading


def beams_for(said: Mapping[str, Any], settings_given: Mapping[str, Any]) -> int:
    """Return how many hypotheses to follow: as many as asked for, or as the model's files say, or four."""
    return beams_of(settings_given, beams_of(said, BEAMS))


def refuse_wishes(files: Wishes) -> None:
    """Refuse what a model's files want of every answer and no search over beams does.

    Raises:
        UsageError: they have stop strings, or a penalty that counts where tokens are drawn alone.
    """
    refuse_with_beams(stop_strings=files.stop, **files.always)


@dataclass(frozen=True)
class Found:
    """One answer of a search: its text, and the hypothesis with its tokens, log probability and score."""

    text: str
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Beams:
    """How answers are searched for.

    Attributes:
        width: hypotheses followed a text.
        penalty: of lengths.
        answers: how many are returned.
        groups: above 1, groups that avoid each other's choices.
        diversity: what a repeated choice costs then, in nats.
        coverage: beta of the coverage penalty, for encoder-decoders with attention.
    """

    width: int
    penalty: Penalty
    answers: int = 1
    groups: int = 1
    diversity: float = 0.5
    coverage: float = 0.0


def search(
    stored: Stored, texts: Source | Sequence[Source], beams: Beams, longest: int, truncate: Truncate
) -> list[list[Found]]:
    """Return what ``LanguageModel.search`` does, ranked by any penalty."""
    refuse_wishes(wishes(stored))
    model = writer(stored)
    read, limits = sources(stored, texts, truncate, longest), limits_of(stored, longest)
    settings: dict[str, Any] = {
        "penalty": beams.penalty, "vocabulary": tokenizer_of(stored).size, "device": device_of(stored)
    }  # fmt: skip
    if beams.groups > 1:
        if beams.coverage:
            raise UsageError("groups of beams have no coverage penalty", "give one of the two")
        hypotheses = [_of_groups(read.before(model), row, limits, beams, settings) for row in read.rows]
    else:
        hypotheses = beam_search(
            read.before(model),
            read.rows,
            limits,
            beams.width,
            answers=beams.answers,
            coverage_penalty=beams.coverage,
            **settings,
        )
    return [[Found(spell_answer(stored, one.ids), one) for one in row] for row in hypotheses]


def _of_groups(
    model: Any, row: list[int], limits: Limits, beams: Beams, settings: Mapping[str, Any]
) -> list[Hypothesis]:
    """Return the best answer of each group, then the second ones, as many as are wanted."""
    if not 1 <= beams.answers <= beams.width:
        raise UsageError(f"{beams.answers} answers of {beams.width} beams", "ask for no more answers than beams")
    groups = diverse_beam_search(model, row, limits, beams.width, beams.groups, diversity=beams.diversity, **settings)
    ranked = [one for rank in zip_longest(*groups) for one in rank if one is not None]
    return ranked[: beams.answers]


def between(stored: Stored, source: str | None, target: str | None) -> Stored:
    """Return a model of many languages that reads one and writes another; None leaves what its files say.

    Raises:
        UsageError: its tokenizer has no such language.
    """
    if target is not None:
        stored = with_key(stored, "forced_bos_token_id", language_token(tokenizer_of(stored), target))
    return stored if source is None else replace(stored, tokenizer=reading(tokenizer_of(stored), source))


def translate(
    stored: Stored,
    texts: Sequence[str],
    *,
    num_beams: int | None,
    length_penalty: float | int | None,
    max_new_tokens: int,
    batch_size: int,
    beyond_source: int | None,
    coverage_penalty: float | int,
    source_language: str | None,
    target_language: str | None,
    done: Callable[[int], None] | None,
) -> list[str]:
    """Return the translation of each text; see ``LanguageModel.translate``."""
    if not stored.model.spec.reads_source:
        raise UsageError("only an encoder-decoder translates", "train one on pairs, or use generate")
    stored = between(stored, source_language, target_language)
    files = wishes(stored)
    refuse_wishes(files)
    places = [place for place, text in enumerate(texts) if text.strip()]
    rows = [line(stored, texts[place], place) for place in places]
    limits = limits_of(stored, max_new_tokens)
    penalty = files.penalty if length_penalty is None else LengthPenalty(length_penalty)
    beams = beams_for(files.settings, {"num_beams": num_beams})
    size, device = tokenizer_of(stored).size, device_of(stored)

    def answer(numbers: list[int]) -> list[str]:
        hypotheses = beam_search(
            writer(stored),
            [rows[number] for number in numbers],
            limits,
            beams,
            penalty=penalty,
            vocabulary=size,
            device=device,
            beyond_source=beyond_source,
            coverage_penalty=coverage_penalty,
        )
        return [spell_answer(stored, row[0].ids) for row in hypotheses]

    by_place = dict(zip(places, in_batches(list(map(len, rows)), batch_size, answer, done), strict=True))
    return [by_place.get(place, "") for place in range(len(texts))]
