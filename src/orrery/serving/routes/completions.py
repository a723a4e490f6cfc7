"""``POST /v1/completions``: prompts and their continuations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.generation.requests import Answering, Request, TokenScore
from orrery.language_model.texts import opening_of
from orrery.serving import requests
from orrery.serving.answer_head import head
from orrery.serving.answers import AnswerPiece, GoneError, begun
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.events import EventStream
from orrery.serving.held_scores import shown_scores
from orrery.serving.logprobs import CompletionLogprobs, bounded, of_chat
from orrery.serving.schema.completions import Completion, CompletionRequest
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Served, Serving
from orrery.serving.usage import usage_of
from orrery.text.infill import Infill

router = APIRouter(route_class=StrictRoute, tags=["completions"])

USUAL = 16
"""Tokens of an answer where nothing is said, as OpenAI has it."""


@dataclass(frozen=True)
class _Prompt:
    """A prompt as text and as ids.

    Attributes:
        text: as ``echo`` tells it.
        row: what the model reads.
        opening: how many of its ids the tokenizer put before the text; they are not told.
    """

    text: str
    row: list[int]
    opening: int


@dataclass(frozen=True)
class _Prepared:
    """Prompts, and the requests of all answers, those of one prompt side by side."""

    asked: CompletionRequest
    prompts: list[_Prompt]
    requests: list[Request]

    def text(self, index: int) -> str:
        """Return the prompt of an answer."""
        return self.prompts[index // self.asked.drawn].text

    def prompt_scores(self, index: int, answering: Answering) -> Sequence[TokenScore]:
        """Return what is told of the tokens of a prompt."""
        return answering.prompt_scores[self.prompts[index // self.asked.drawn].opening :]


@router.post("/api/v0/completions", include_in_schema=False)  # where LM Studio's clients ask
@router.post("/v1/completions", response_model=Completion, responses=FAILURES)
async def completions(request: CompletionRequest, served: Serving, http: HttpRequest) -> Response:
    """Continue one prompt or several; with ``stream`` as server-sent events."""
    prepared, answers = await begun(served, request, prepare, stream=bool(request.stream))
    shared = head("cmpl", "text_completion", served, request.model, answers)
    if request.stream:
        return EventStream(answers, _Stream(served, prepared, shared))
    try:
        answered = await answers.all(http.receive)
    except GoneError:
        return Response(status_code=499)
    return AsciiJson(_whole(served, prepared, answered, shared))


def prepare(served: Served, request: CompletionRequest, usual: int | None = USUAL) -> _Prepared:
    """Return the requests for the engine, checked.

    Args:
        served: the model.
        request: what is asked.
        usual: the most tokens of an answer where nothing is said; what is left of the context without.
    """
    if request.echo and request.logprobs is not None and served.lm.model.reads_at_once:
        raise ApiError(400, "this model predicts none of its prompt: echo has no logprobs", param="echo")
    infill = requests.infill_for(served) if request.suffix else None
    prompts = _prompts(served, request, infill)
    rows = [one.row for one in prompts]
    longest = [requests.longest_answer(served, len(row), request.max_tokens, usual, "prompt") for row in rows]
    requests.check_cost(served, map(len, rows), request.drawn, max(longest))
    sampler = requests.sampler_for(served, request)
    scores = request.logprobs if request.drawn == request.choices else (request.logprobs or 0)
    prepared: list[Request] = []
    ends = frozenset() if infill is None else infill.ends
    limits = {most: _limits(served, request, most, ends) for most in set(longest)}
    for row, most in zip(rows, longest, strict=True):
        one = Request(
            row,
            limits[most],
            sampler,
            scores=scores,
            prompt_scores=bool(request.echo and request.logprobs is not None),
            adapter=served.adapter_of(request.model),
        )
        prepared += requests.numbered(one, request.seed, request.drawn)
    return _Prepared(request, prompts, prepared)


def _limits(served: Served, request: CompletionRequest, most: int, ends: frozenset[int]) -> Any:
    form = request.response_format
    demands = requests.demands_of(request.bad_words, {} if form is None else form.demanded)
    return requests.limits_for(served, request, most, ends, demands)


def _prompts(served: Served, request: CompletionRequest, infill: Infill | None) -> list[_Prompt]:
    """Return the prompts, each with the suffix where its model was taught to see one."""
    prompt = request.prompt
    several = [prompt] if isinstance(prompt, str) or isinstance(prompt[0], int) else list(prompt)
    requests.check_cost(served, [1] * len(several), request.drawn, 0)
    opening, suffix = len(opening_of(served.lm.tokenizer)), request.suffix or ""
    prompts = []
    for place, one in enumerate(several):
        name = "prompt" if len(several) == 1 else f"prompt[{place}]"
        if not isinstance(one, str):
            row = requests.given(served, list(one), name)  # type: ignore[arg-type]
            row = row if infill is None else infill.around(row, requests.encoded_suffix(served, suffix))
        elif infill is None:
            row = requests.encoded(served, one, name)
        else:
            row = requests.around_gap(served, infill, one, suffix, name)
        row = requests.with_prefix(served, row, request.prefix)
        if isinstance(one, str):
            prompts.append(_Prompt(one, row, opening))
        else:
            prompts.append(_Prompt(_spelt(served, row) if request.echo or request.logprobs else "", row, 0))
    return prompts


def _spelt(served: Served, row: Sequence[int]) -> str:
    known = served.lm.tokenizer.size
    return served.lm.tokenizer.decode([id for id in row if id < known])


def _whole(served: Served, prepared: _Prepared, answers: Sequence[Answering], shared: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a request that is not streamed."""
    request, drawn = prepared.asked, prepared.asked.drawn
    choices = []
    for prompt in range(len(prepared.prompts)):
        own = range(prompt * drawn, (prompt + 1) * drawn)
        best = sorted(own, key=lambda i: -_mean(answers[i].scores)) if drawn > request.choices else list(own)
        choices += [_choice(served, prepared, answers[i], i) for i in best[: request.choices]]
    numbered = [{**choice, "index": index} for index, choice in enumerate(choices)]
    return {**shared, "choices": numbered, "usage": usage_of(dict(enumerate(answers)), drawn)}


def _choice(served: Served, prepared: _Prepared, own: Answering, index: int) -> dict[str, Any]:
    request, prompt, answer = prepared.asked, prepared.text(index), own.result()
    logprobs = None
    if request.logprobs is not None:
        recorded = CompletionLogprobs(served.tokens, request.logprobs, 0 if request.echo else len(prompt))
        recorded.add_prompt(served.lm.tokenizer, prepared.prompt_scores(index, own))
        scores = shown_scores(served.lm.tokenizer, own)
        recorded.add(served.lm.tokenizer, scores)
        logprobs = {**recorded.take(), **_content(served, request, scores)}
    return {
        "index": index,
        "text": f"{prompt if request.echo else ''}{answer.text}",
        "logprobs": logprobs,
        "finish_reason": requests.FINISH[answer.finish_reason],
    }


def _content(served: Served, request: CompletionRequest, scores: Sequence[TokenScore]) -> dict[str, Any]:
    """Return the tokens as a chat tells them, with their ids, where these are asked for."""
    return {"content": of_chat(served.tokens, scores, ids=True)} if request.return_token_ids else {}


def _mean(scores: Sequence[TokenScore]) -> float:
    return sum(map(bounded, scores)) / max(1, len(scores))


class _Stream:
    """The events of a stream."""

    def __init__(self, served: Served, prepared: _Prepared, shared: dict[str, Any]) -> None:
        self._served, self._prepared = served, prepared
        request = prepared.asked
        options = request.stream_options
        self._tells_usage = options is not None and options.include_usage
        self._shared = {**shared, "usage": None} if self._tells_usage else shared
        self._told: dict[int, CompletionLogprobs] = {}
        self._ended: dict[int, Answering] = {}
        self._opened: set[int] = set()

    def opening(self) -> list[dict[str, Any]]:
        """Return nothing: a completion has no first word."""
        return []

    def tell(self, piece: AnswerPiece) -> list[dict[str, Any]]:
        """Return the event of what became known of one answer."""
        request, index = self._prepared.asked, piece.index
        text, reason = piece.text, None
        if piece.ended:
            self._ended[index] = piece.answering
            reason = requests.FINISH[piece.answering.result().finish_reason]
        if index not in self._opened and request.echo:
            text = self._prepared.text(index) + text
        logprobs = None if request.logprobs is None else self._logprobs(piece)
        self._opened.add(index)
        if not text and logprobs is None and reason is None:
            return []
        choice = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}
        return [{**self._shared, "choices": [choice]}]

    def closing(self) -> list[dict[str, Any]]:
        """Return the event of what was read and written, where it is asked for."""
        if not self._tells_usage:
            return []
        usage = usage_of(self._ended, self._prepared.asked.drawn)
        return [{**self._shared, "choices": [], "usage": usage}]

    def failing(self, error: ApiError) -> list[dict[str, Any]]:
        """Return the error."""
        return [error.body]

    def _logprobs(self, piece: AnswerPiece) -> dict[str, list[Any]] | None:
        request, tokenizer = self._prepared.asked, self._served.lm.tokenizer
        own = self._told.get(piece.index)
        if own is None:
            offset = 0 if request.echo else len(self._prepared.text(piece.index))
            own = self._told[piece.index] = CompletionLogprobs(self._served.tokens, request.logprobs or 0, offset)
            if request.echo:
                own.add_prompt(tokenizer, self._prepared.prompt_scores(piece.index, piece.answering))
        own.add(tokenizer, piece.scores)
        scores = own.take()
        return {**scores, **_content(self._served, request, piece.scores)} if scores["tokens"] else None
