"""Writing as the keys of a generation_config.json ask for it, with the meaning that transformers gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.generation_settings import old_keys
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import device_of, reads_apart, tokenizer_of, wishes, writer
from orrery.generation.beams import HuggingFacePenalty, RefilledBeam
from orrery.generation.search import beam_search
from orrery.language_model.generate import continued
from orrery.language_model.pictures import Picture, reads_pictures
from orrery.language_model.sources import Sources, of_ids, pictures
from orrery.language_model.texts import limits_of, prompt
from orrery.schema.writing import refuse_with_beams

USUAL = 20
"""Tokens of a row where nothing says how many, as in transformers: of the prompt and the answer together."""


def answers(
    stored: Stored,
    rows: Sequence[Sequence[int]] | Sequence[Picture],
    settings: Mapping[str, Any],
    seeds: Sequence[int] | None,
    stop: Sequence[str],
) -> list[list[list[int]]]:
    """Return the ids of the answers to each row or picture; see ``LanguageModel.write``."""
    said = {**said_by_files(stored), **{key: value for key, value in settings.items() if value is not None}}
    count = said.pop("num_return_sequences", 1) or 1
    with_limit = replace(stored, generation={"max_length": USUAL, **said})
    begun = _begun(stored, rows)
    longest = [wishes(with_limit).longest(1 if reads_apart(stored) else len(row), USUAL) for row in begun.rows]
    by_place: dict[int, list[list[int]]] = {}
    for length in sorted(set(longest)):
        places = [place for place, own in enumerate(longest) if own == length]
        own = [0 if seeds is None else seeds[place] for place in places]
        by_place.update(
            zip(places, _of_one_length(with_limit, begun.some(places), length, count, own, stop), strict=True)
        )
    return [by_place[place] for place in range(len(begun.rows))]


def _begun(stored: Stored, rows: Sequence[Any]) -> Sources:
    """Return what is read: pictures, or rows of ids, of which none is empty."""
    if reads_pictures(stored) is not None:
        return pictures(stored, rows)
    return of_ids(stored, [list(row) or beginning(stored) for row in rows])


def _of_one_length(
    limited: Stored, read: Sources, longest: int, count: int, seeds: list[int], stop: Sequence[str]
) -> list[list[list[int]]]:
    """Return ``count`` answers to each source, of at most ``longest`` tokens."""
    want = wishes(limited)
    limits = limits_of(limited, longest, stop)
    if want.beams > 1:
        if want.settings.get("do_sample"):
            raise UsageError("beams that are drawn are not known", "leave do_sample or the beams away")
        refuse_with_beams(stop=limits.stop, **want.always)
        hypotheses = beam_search(
            read.before(writer(limited)),
            read.rows,
            limits,
            want.beams,
            penalty=HuggingFacePenalty(want.settings.get("length_penalty", 1.0)),
            answers=count,
            vocabulary=tokenizer_of(limited).size,
            device=device_of(limited),
            beam=partial(RefilledBeam, early_stopping=want.settings.get("early_stopping", False)),
        )
        return [[one.ids for one in row] for row in hypotheses]
    if count > 1 and not want.settings.get("do_sample"):
        raise UsageError(
            f"{count} answers that are all the most probable one", "set do_sample=True, or search with several beams"
        )
    drawn = [seed + number for seed in seeds for number in range(count)]
    repeated = read.some([place for place in range(len(read.rows)) for _ in range(count)])
    made = continued(limited, lambda: repeated, limits, drawn, None, want.sampling)
    return [[one.ids for one in made[start : start + count]] for start in range(0, len(made), count)]


def said_by_files(stored: Stored) -> dict[str, Any]:
    """Return the keys of the model's files that say how to write, those that are null left out."""
    said = stored.generation or old_keys(stored.config or {})
    return {key: value for key, value in said.items() if value is not None}


def task_keys(stored: Stored, task: str) -> dict[str, Any]:
    """Return the keys that config.json has for one task, and its ``prefix``.

    Raises:
        ModelFileError: they are no mapping.
    """
    config = stored.config or {}
    task_settings = (config.get("task_specific_params") or {}).get(task) or {}
    if not isinstance(task_settings, Mapping):
        raise ModelFileError(f"task_specific_params of {task} is no mapping", "correct config.json")
    prefix = {} if config.get("prefix") is None else {"prefix": config["prefix"]}
    return {**prefix, **task_settings}


def beginning(stored: Stored) -> list[int]:
    """Return the token that an empty prompt stands for.

    Raises:
        UsageError: the tokenizer has none.
    """
    return prompt(stored, (), None, stored.model.spec.context)
