"""Continuing texts: drawing tokens one after another, with what the model's files say where the caller says nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import (
    check_writes,
    device_of,
    reads_apart,
    tokenizer_of,
    vocabulary,
    wishes,
    with_key,
    writer,
)
from orrery.generation.contrastive import contrastive_search
from orrery.generation.drafts import Draft, DraftModel, PromptLookup
from orrery.generation.generate import generate as write_tokens
from orrery.generation.row import Generation, Limits
from orrery.generation.samplers import Sampler, sampler
from orrery.generation.search import LengthPenalty
from orrery.generation.speculative import Speculation, speculate
from orrery.inspection.interventions.intervention import Intervention
from orrery.inspection.interventions.interventions import Interventions
from orrery.inspection.interventions.writing import EditedWriter
from orrery.language_model.arguments import strings_of
from orrery.language_model.guides import NO_DEMANDS, Demands
from orrery.language_model.pictures import reads_pictures
from orrery.language_model.search import Beams, search
from orrery.language_model.sources import Source, Sources, one_source
from orrery.language_model.texts import EVERYTHING, Truncate, limits_of, prompt
from orrery.schema.writing import SETTINGS, refuse_with_beams

Edits = Interventions | Sequence[Mapping[str, Any] | Intervention]
NO_EDITS: Interventions = Interventions()
LONGEST_ANSWER = 64
"""Tokens of an answer where neither the caller nor the model's files name a number."""


def generate(
    stored: Stored,
    text: Source,
    drawing: Mapping[str, Any],
    demands: Demands,
    *,
    max_new_tokens: int | None,
    num_beams: int | None,
    length_penalty: float | int | None,
    stop: str | Sequence[str],
    seed: int,
    stream: Callable[[str], None] | None,
    truncate: Truncate,
    edits: Edits = (),
) -> str:
    """Return a continuation of ``text``; ``drawing`` has the settings of drawing, see ``LanguageModel.generate``."""
    given = {key: value for key, value in drawing.items() if value is not None}
    files, inside = wishes(stored), Interventions.of(edits)
    plain = not (given or stop or stream or demands != NO_DEMANDS or inside.edits)
    beams = (files.beams if plain else 1) if num_beams is None else num_beams
    if beams < 1:
        raise UsageError(f"num_beams = {beams} is not possible", "it must be at least 1, which is no search")
    check_writes(stored)
    longest = _longest(stored, text) if max_new_tokens is None else max_new_tokens
    if beams > 1:
        drawn = files.sampling["temperature"] if num_beams is None else 0
        repeated = given.pop("repetition_penalty", None)
        refuse_with_beams(**given, stop=stop, stream=stream, do_sample=drawn, **demands.given, edits=inside.edits)
        penalty = files.penalty if length_penalty is None else LengthPenalty(length_penalty)
        with_penalty = with_repetitions(stored, repeated)
        return search(with_penalty, [text], Beams(beams, penalty), longest, truncate)[0][0].text
    usual = files.sampling if given.get("temperature") is None else {"temperature": 0}
    show = None if stream is None else lambda row, piece: stream(piece)
    limits = limits_of(stored, longest, strings_of(stop), demands=demands)
    return continued(
        stored, lambda: one_source(stored, text, truncate, longest), limits, seed, show, {**usual, **given}, inside
    )[0].text


def with_repetitions(stored: Stored, penalty: float | int | None) -> Stored:
    """Return the model with another penalty of repetitions than its files', where one is given.

    Raises:
        UsageError: it is not above 0.
    """
    if penalty is None:
        return stored
    SETTINGS["repetition_penalty"].refuse(penalty)
    return with_key(stored, "repetition_penalty", penalty)


def continued(
    stored: Stored,
    sources_of: Callable[[], Sources],
    limits: Limits,
    seed: int | Sequence[int],
    show: Callable[[int, str], None] | None,
    sampling: Mapping[str, Any],
    edits: Interventions = NO_EDITS,
) -> list[Generation]:
    """Continue prompts or pictures, which are read only once the model and the settings are known to serve."""
    model, tokenizer, chosen = writer(stored), tokenizer_of(stored), sampler_of(stored, sampling)
    if edits.edits:
        model = EditedWriter(stored.model, edits)
    read = sources_of()
    return write_tokens(
        read.before(model), read.rows, tokenizer, limits, sampler=chosen, seed=seed, show=show, device=device_of(stored)
    )


def contrasted(
    stored: Stored,
    text: Source,
    limits: Limits,
    *,
    top_k: int,
    penalty_alpha: float | int,
    stream: Callable[[str], None] | None,
    truncate: Truncate,
) -> Generation:
    """Continue one text by contrastive search; see ``LanguageModel.contrastive_search``."""
    counted = {name: value for name, value in wishes(stored).always.items() if not SETTINGS[name].is_off(value)}
    if counted:
        raise UsageError(
            f"generation_config.json has a {' and a '.join(counted)}, which contrastive search does not know",
            "remove it there, or draw tokens",
        )
    model, read = writer(stored), one_source(stored, text, truncate, limits.max_new_tokens)
    return contrastive_search(
        read.before(model),
        read.rows[0],
        tokenizer_of(stored),
        limits,
        top_k=top_k,
        alpha=float(penalty_alpha),
        show=stream,
        device=device_of(stored),
    )


def speculated(
    stored: Stored,
    text: Source,
    draft: Draft,
    limits: Limits,
    *,
    count: int,
    seed: int,
    stream: Callable[[str], None] | None,
    truncate: Truncate,
    sampling: Mapping[str, Any],
) -> Speculation:
    """Continue one text with guesses; see ``LanguageModel.speculate``."""
    model, read = writer(stored), one_source(stored, text, truncate, limits.max_new_tokens)
    return speculate(
        read.before(model),
        read.rows[0],
        tokenizer_of(stored),
        limits,
        draft,
        count=count,
        sampler=sampler_of(stored, sampling),
        seed=seed,
        show=stream,
        device=device_of(stored),
    )


def draft_of(stored: Stored, guesser: Stored | Literal["lookup"]) -> Draft:
    """Return what guesses for a model.

    Raises:
        UsageError: the other model has another vocabulary, or reads in another way.
    """
    if guesser == "lookup":
        return PromptLookup()
    if reads_pictures(stored) is not None:
        raise UsageError("a model that guesses for a captioner would have to see its picture", "take lookup")
    if tokenizer_of(guesser).fingerprint != tokenizer_of(stored).fingerprint:
        raise UsageError(
            f"{guesser.folder} has another tokenizer than {stored.folder}",
            "a draft guesses ids: take a smaller model of the same vocabulary, or lookup",
        )
    if reads_apart(guesser) != reads_apart(stored):
        raise UsageError("an encoder-decoder and a decoder cannot guess for each other", "take lookup")
    return DraftModel(writer(guesser), guesser.model.spec.context, device_of(guesser))


def sampler_of(stored: Stored, sampling: Mapping[str, Any]) -> Sampler:
    """Return the sampler of these settings; what counts in every choice is as the files say where it is not given."""
    given = {name: value for name, value in sampling.items() if value is not None}
    tokens = stored.model.spec.target_vocabulary or vocabulary(stored)
    return sampler(vocabulary=min(tokenizer_of(stored).size, tokens), **{**wishes(stored).always, **given})


def _longest(stored: Stored, text: Source) -> int:
    """Return the most tokens of an answer where the caller names none."""
    read = 1 if reads_apart(stored) else len(prompt(stored, text, "left", EVERYTHING))  # type: ignore[arg-type]
    return wishes(stored).longest(read, LONGEST_ANSWER)
