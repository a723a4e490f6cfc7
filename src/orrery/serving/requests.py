"""From what a client asks to what the engine takes: ids, limits, samplers, costs."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orrery.errors import OrreryError
from orrery.exchange.stored import reads_apart, vocabulary, wishes
from orrery.generation.requests import Answering, Request
from orrery.generation.row import Limits
from orrery.generation.samplers import Sampler
from orrery.language_model.generate import sampler_of
from orrery.language_model.guides import Demands
from orrery.language_model.texts import EVERYTHING, LONGEST_TOKEN, encode, limits_of, opening_of, prompt
from orrery.serving.errors import ApiError, api_error
from orrery.serving.schema.sampling import SamplingFields
from orrery.serving.served import Served
from orrery.text.infill import FORMS, Infill, infill_of

FINISH = {"end": "stop", "stop": "stop", "length": "length", "context": "length"}
"""OpenAI's names of the reasons for which an answer ends."""
SEEDS = 2**63
COUNTED = 64
"""Contexts that a text may fill and still be cut into tokens, so that its refusal says how many there are."""


def encoded(served: Served, text: str, param: str) -> list[int]:
    """Return the ids of a prompt; one that cannot fit is refused before all of it is cut.

    Raises:
        ApiError: it is longer than the context, or has no token.
    """
    check_size(served, len(text.encode()), param)
    try:
        return prompt(served.stored, text, "left", EVERYTHING)
    except OrreryError as error:
        raise api_error(error, param) from None


def infill_for(served: Served) -> Infill:
    """Return how the model was taught to fill in what stands between two texts.

    Raises:
        ApiError: its tokenizer has no tokens for that.
    """
    infill = None if reads_apart(served.stored) else infill_of(served.lm.tokenizer)
    size = vocabulary(served.stored)
    if infill is None or any(part >= size for part in infill.parts if isinstance(part, int)):
        message = (
            "suffix is not supported by this model: its tokenizer has no tokens for filling in the middle, such as "
        )
        raise ApiError(400, f"{message}{FORMS[0][0]}", param="suffix", code="unsupported_parameter")
    return infill


def around_gap(served: Served, infill: Infill, before: str, behind: str, param: str) -> list[int]:
    """Return the ids of two texts between which the answer stands, behind what the tokenizer puts before any text.

    Raises:
        ApiError: they are longer than the context.
    """
    check_size(served, len(before.encode()), param)
    try:
        ids = encode(served.stored, before, "left", EVERYTHING) if before else []
    except OrreryError as error:
        raise api_error(error, param) from None
    return [*opening_of(served.lm.tokenizer), *infill.around(ids, encoded_suffix(served, behind))]


def encoded_suffix(served: Served, text: str) -> list[int]:
    """Return the ids of what stands behind an answer, in the middle of a text.

    Raises:
        ApiError: it is longer than the context.
    """
    check_size(served, len(text.encode()), "suffix")
    ids = served.lm.tokenizer.continuing.encode(text)
    if len(ids) > served.lm.context:
        raise too_long(served, len(ids), 0, "suffix")
    return ids


def check_size(served: Served, size: int, param: str) -> None:
    """Refuse a text of so many bytes that, however it is cut, it cannot fit the context.

    Raises:
        ApiError: it is longer than the context.
    """
    least = -(-size // min(served.tokens.longest, LONGEST_TOKEN // COUNTED))
    if least > COUNTED * served.lm.context:
        raise too_long(served, least, 0, param, at_least=True)


def given(served: Served, ids: Sequence[int], param: str) -> list[int]:
    """Return ids that a client sent.

    Raises:
        ApiError: one is none of the model's.
    """
    size = vocabulary(served.stored)
    wrong = next((id for id in ids if id >= size), None)
    if wrong is not None:
        raise ApiError(400, f"{param}: the model has no token {wrong}; its ids are 0 to {size - 1:,}", param=param)
    return list(ids)


def with_prefix(served: Served, ids: Sequence[int], prefix: Sequence[int]) -> list[int]:
    """Return the ids of a prompt and of what its answer begins with.

    Raises:
        ApiError: an id is none of the model's, or the answer has a row of its own.
    """
    if prefix and reads_apart(served.stored):
        message = "an encoder-decoder's answer has a row of its own, which begins with the model's first token"
        raise ApiError(400, message, param="prefix_ids", code="unsupported_parameter")
    return [*ids, *given(served, prefix, "prefix_ids")]


def longest_answer(served: Served, prompt: int, wanted: int | None, usual: int | None, param: str) -> int:
    """Return the most tokens of an answer; ``usual`` where nothing is asked, and the rest of the context without.

    Raises:
        ApiError: prompt and answer do not fit the context together.
    """
    rest = served.lm.context - (0 if reads_apart(served.stored) else prompt)
    if prompt > served.lm.context or (wanted if wanted is not None else 1) > rest:
        raise too_long(served, prompt, wanted or 0, param)
    memory = rest if served.engine is None else served.engine.most_tokens - prompt
    if (wanted or 1) > memory:
        message = f"a prompt of {prompt:,} tokens leaves memory for {max(0, memory):,} more, "
        message += f"and {wanted or 1:,} are asked for"
        raise ApiError(400, message, param="max_tokens", code="too_many_tokens")
    if wanted is not None:
        return wanted
    rest = min(rest, memory)
    return rest if usual is None else min(usual, rest)


def too_long(
    served: Served, prompt: int, answer: int, param: str, at_least: bool = False, context: int | None = None
) -> ApiError:
    """Return the refusal of a prompt that does not fit, with both numbers; ``context`` is less than the model's."""
    about = "at least " if at_least else ""
    message = (
        f"This model's maximum context length is {context or served.lm.context} tokens. However, you requested "
        f"{about}{prompt + answer} tokens ({about}{prompt} in the prompt, {answer} in the completion). "
        "Please reduce the length of the prompt or the completion."
    )
    return ApiError(400, message, param=param, code="context_length_exceeded")


def check_cost(served: Served, lengths: Iterable[int], choices: int, answer: int) -> None:
    """Refuse a request that asks for more answers, or more tokens in all of them, than one may.

    Raises:
        ApiError: it does.
    """
    safety, rows = served.settings.safety, list(lengths)
    if len(rows) * choices > safety.choices:
        message = f"{len(rows)} prompts with {choices} answers each: one request may have {safety.choices} answers"
        raise ApiError(400, message, param="n" if choices > 1 else "prompt", code="too_many_choices")
    tokens = choices * sum(length + answer for length in rows)
    if tokens > safety.tokens:
        message = f"{tokens:,} tokens of prompts and answers: one request may have {safety.tokens:,}"
        raise ApiError(400, message, param="max_tokens", code="too_many_tokens")


def sampler_for(served: Served, request: SamplingFields) -> Sampler:
    """Return how tokens are drawn: as asked, else as generation_config.json says, else at temperature 1.

    Raises:
        ApiError: a setting that the model does not know.
    """
    files = wishes(served.stored).sampling
    usual: dict[str, Any] = files if files["temperature"] else {"temperature": 1.0}
    if "temperature" in request.drawing:
        usual = {}
    try:
        return sampler_of(served.stored, {**usual, **request.drawing})
    except OrreryError as error:
        param = next((name for name in request.drawing if error.message.startswith(name)), "temperature")
        raise api_error(error, param) from None


def demands_of(words: Sequence[str] | None, form: Mapping[str, Any], param: str = "response_format") -> Demands:
    """Return what an answer must be.

    Raises:
        ApiError: a form that no answer is held to.
    """
    try:
        return Demands.of(words or (), **form)
    except OrreryError as error:
        raise api_error(error, param) from None


def limits_for(served: Served, request: SamplingFields, longest: int, end: frozenset[int], demands: Demands) -> Limits:
    """Return when an answer ends and what it must be.

    Raises:
        ApiError: a form that cannot be held.
    """
    asked = frozenset(request.stop_token_ids or ())
    try:
        limits = limits_of(served.stored, longest, request.stops, end | asked, demands, served.held)
    except OrreryError as error:
        param = "bad_words" if demands.form is None else "response_format"
        raise api_error(error, param) from None
    if request.min_tokens:
        held = replace(limits.constraints, least_answer=request.min_tokens)
        limits = replace(limits, constraints=held)
    return replace(limits, end=asked) if request.ignore_eos else limits


def numbered(request: Request, seed: int | None, count: int) -> list[Request]:
    """Return a request so many times, each with a seed of its own; without one, seeds that nobody knows."""
    first = secrets.randbits(62) if seed is None else seed
    return [replace(request, seed=(first + index) % SEEDS) for index in range(count)]


def stopped_by(served: Served, answering: Answering) -> str | None:
    """Return which of its stop strings ended an answer."""
    result, tokenizer = answering.result(), served.lm.tokenizer
    if result.finish_reason != "stop":
        return None
    behind = tokenizer.decode([id for id in answering.written if id < tokenizer.size])[len(result.text) :]
    return next((stop for stop in sorted(answering.request.limits.stop, key=len) if behind.startswith(stop)), None)
