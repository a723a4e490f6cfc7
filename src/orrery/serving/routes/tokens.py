"""``POST /tokenize`` and ``/detokenize``: texts to ids and back, as the model reads them."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator
from starlette.responses import Response

from orrery.serving.body import StrictRoute
from orrery.serving.conversations import rendered
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.schema.chat import MOST_MESSAGES, Message
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.fields import Body, Flag, Text, TokenId
from orrery.serving.served import Served, Serving

router = APIRouter(route_class=StrictRoute, tags=["tokens"])

MOST = 1 << 20
"""Characters of a text that is cut into tokens at once."""


class TokenizeRequest(Body):
    """A text, or a conversation up to where the next answer begins; a control token that they spell is letters.

    Attributes:
        add_special_tokens: whether the tokens stand around a text that the model reads there.
    """

    model: Text | None = None
    prompt: Annotated[str, Field(strict=True, max_length=MOST)] | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)] | None = None
    add_special_tokens: Flag = True
    return_token_strs: Flag = False

    @model_validator(mode="after")
    def _check_one(self) -> "TokenizeRequest":
        if (self.prompt is None) == (self.messages is None):
            raise ApiError(400, "give either a prompt or messages", param="prompt")
        return self


class TokenizeAnswer(BaseModel):
    """The ids of a text."""

    tokens: list[int]
    count: int
    max_model_len: int
    token_strs: list[str] | None = None


class DetokenizeRequest(Body):
    """Token ids."""

    model: Text | None = None
    tokens: Annotated[list[TokenId], Field(max_length=MOST)]


class Detokenized(BaseModel):
    """The text of ids, control tokens spelt out."""

    prompt: str


@router.post("/tokenize", response_model=TokenizeAnswer, response_model_exclude_none=True, responses=FAILURES)
async def tokenize(request: TokenizeRequest, served: Serving) -> Response:
    """Return the ids of a text."""
    served.adapter_of(request.model)
    with served.enter():
        return AsciiJson(await served.do(_tokens, served, request))


def _tokens(served: Served, request: TokenizeRequest) -> dict[str, Any]:
    said = request.messages
    if said is not None:
        ids = rendered(served, said)
    else:
        tokenizer, text = served.lm.tokenizer, request.prompt or ""
        ids = tokenizer.frame(text).ids if request.add_special_tokens else tokenizer.encode(text)
    answer: dict[str, Any] = {"tokens": ids, "count": len(ids), "max_model_len": served.lm.context}
    return answer | ({"token_strs": [served.tokens.text(id) for id in ids]} if request.return_token_strs else {})


@router.post("/detokenize", response_model=Detokenized, responses=FAILURES)
async def detokenize(request: DetokenizeRequest, served: Serving) -> Response:
    """Return the text of ids."""
    served.adapter_of(request.model)
    with served.enter():
        return AsciiJson({"prompt": await served.do(_text, served, request.tokens)})


def _text(served: Served, ids: list[int]) -> str:
    size = served.lm.tokenizer.size
    wrong = next((id for id in ids if id >= size), None)
    if wrong is not None:
        raise ApiError(
            400, f"tokens: the tokenizer has no token {wrong}; its ids are 0 to {size - 1:,}", param="tokens"
        )
    return served.lm.tokenizer.decode(ids, special=True)
