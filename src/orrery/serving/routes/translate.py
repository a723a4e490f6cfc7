"""``/v1/translate``: the translation of each sentence, by an encoder-decoder.

It searches as ``orrery translate`` does, and so does not ask the task ``translation``.
"""

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.errors import UsageError
from orrery.serving.abilities import TRANSLATE
from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson, api_error
from orrery.serving.reading import BATCH, Done, over_rows, texts_of
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.reading import TranslateRequest, TranslationList
from orrery.serving.served import Served, Serving
from orrery.text.languages import language_token

router = APIRouter(route_class=StrictRoute, tags=["reading"])


@router.post(TRANSLATE, response_model=TranslationList, responses=FAILURES)
async def translate(request: TranslateRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the most probable translation of each text that a search over beams finds."""
    served.check_model(request.model)
    served.require(TRANSLATE)
    for param, language in (("source_language", request.source_language), ("target_language", request.target_language)):
        if language is not None:
            _check_language(served, language, param)
    texts = await over_rows(
        served, http.receive, lambda done: _translations(served, request, done), shorter="shorten it"
    )
    data = [{"index": index, "text": text} for index, text in enumerate(texts)]
    return AsciiJson({"object": "list", "data": data, "model": served.name})


def _check_language(served: Served, language: str, param: str) -> None:
    """Refuse a language that the model's tokenizer lacks, by the field that names it."""
    try:
        language_token(served.lm.tokenizer, language)
    except UsageError as error:
        raise api_error(error, param) from None


def _translations(served: Served, request: TranslateRequest, done: Done) -> list[str]:
    texts = texts_of(request.input)
    return served.lm.translate(
        texts,
        **request.search,
        max_new_tokens=request.max_tokens,
        source_language=request.source_language,
        target_language=request.target_language,
        batch_size=BATCH,
        done=lambda count: done(count, len(texts)),
    )
