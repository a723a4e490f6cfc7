"""``POST /tokenize`` and ``/detokenize``: texts to ids and back, as the model reads them."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator
from starlette.responses import Response

from orrery.serving.body import StrictRoute
from orrery.serving.conversations import rendered
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.schema import other_names
from orrery.serving.schema.chat import MOST_MESSAGES, MOST_TOOLS, Message, TemplateVariables, Tool
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.fields import Body, Flag, Text, TokenId
from orrery.serving.schema.reading import MOST_INPUTS
from orrery.serving.served import Served, Serving
from orrery.text.tokenizer import NO_ID

router = APIRouter(route_class=StrictRoute, tags=["tokens"])

MOST = 1 << 20
"""Characters of a text that is cut into tokens at once."""
AT_ONCE = 2_000
"""Tokens that are written as JSON between two chances for other threads."""
Cut = Annotated[str, Field(strict=True, max_length=MOST)]


class TokenizeRequest(Body):
    """A text, or a conversation up to where the next answer begins; a control token that they spell is letters.

    The name of the field says which server the client was written for, and how it is answered: ``prompt`` and
    ``messages`` vLLM, ``content`` llama.cpp, ``inputs`` text-embeddings-inference.

    Attributes:
        add_special_tokens: whether the tokens stand around a text that the model reads there.
    """

    UNSUPPORTED: ClassVar = {
        "parse_special": "what looks like a control token is ordinary text",
        "add_generation_prompt": "a conversation is told up to where the next answer begins",
        "continue_final_message": "a conversation is told up to where the next answer begins",
        "chat_template": other_names.UNSUPPORTED["chat_template"][1],
    }
    NEUTRAL: ClassVar = {
        "parse_special": (False,), "add_generation_prompt": (True,), "continue_final_message": (False,),
    }  # fmt: skip

    model: Text | None = None
    prompt: Cut | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)] | None = None
    content: Cut | None = None
    inputs: Cut | Annotated[list[Cut], Field(min_length=1, max_length=MOST_INPUTS)] | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    chat_template_kwargs: TemplateVariables | None = None
    add_special_tokens: Flag = True
    add_special: Flag = Field(False, description="The same, of llama.cpp.")
    with_pieces: Flag = Field(False, description="Tell each token's text, to clients of llama.cpp.")
    return_token_strs: Flag = False

    @model_validator(mode="after")
    def _check_one(self) -> "TokenizeRequest":
        if sum(one is not None for one in (self.prompt, self.messages, self.content, self.inputs)) != 1:
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
    """The text of ids, control tokens spelt out; under vLLM's name, and under llama.cpp's."""

    prompt: str
    content: str


@router.post("/tokenize", response_model=TokenizeAnswer, response_model_exclude_none=True, responses=FAILURES)
async def tokenize(request: TokenizeRequest, served: Serving) -> Response:
    """Return the ids of a text."""
    served.adapter_of(request.model)
    with served.enter():
        return await served.do(_tokens, served, request)


def _tokens(served: Served, request: TokenizeRequest) -> Response:
    said, texts = request.messages, served.tokens
    if request.content is not None:
        ids = _ids(served, request.content, request.add_special)
        told = [{"id": id, "piece": texts.text(id)} for id in ids] if request.with_pieces else ids
        return Response(b'{"tokens":' + _json_of(told) + b"}", media_type=AsciiJson.media_type)
    if request.inputs is not None:
        several = [request.inputs] if isinstance(request.inputs, str) else request.inputs
        rows = [_json_of(_spans(served, text, request.add_special_tokens)) for text in several]
        return Response(b"[" + b",".join(rows) + b"]", media_type=AsciiJson.media_type)
    if said is not None:
        tools = [tool.model_dump(exclude_none=True) for tool in request.tools or ()]
        ids = rendered(served, said, tools, more=request.chat_template_kwargs)
    else:
        ids = _ids(served, request.prompt or "", request.add_special_tokens)
    answer: dict[str, Any] = {"tokens": ids, "count": len(ids), "max_model_len": served.lm.context}
    return AsciiJson(
        answer | ({"token_strs": [served.tokens.text(id) for id in ids]} if request.return_token_strs else {})
    )


def _json_of(values: Sequence[Any]) -> bytes:
    """Return a list as JSON, written a part at a time: all at once would let no other thread run meanwhile."""
    parts = (
        json.dumps(values[place : place + AT_ONCE], separators=(",", ":")) for place in range(0, len(values), AT_ONCE)
    )
    return b"[" + ",".join(part[1:-1] for part in parts).encode() + b"]"


def _ids(served: Served, text: str, framed: bool) -> list[int]:
    tokenizer = served.lm.tokenizer
    return tokenizer.frame(text).ids if framed else tokenizer.encode(text)


def _spans(served: Served, text: str, framed: bool) -> list[dict[str, Any]]:
    """Return the tokens of a text as text-embeddings-inference tells them, each with where it stands in the text."""
    tokenizer = served.lm.tokenizer
    around = tokenizer.around([NO_ID]).ids if framed else [NO_ID]
    rows = [(id, None, None) for id in around]
    gap = around.index(NO_ID)
    return [
        {"id": id, "text": served.tokens.text(id), "special": start is None, "start": start, "stop": stop}
        for id, start, stop in [*rows[:gap], *tokenizer.spans(text), *rows[gap + 1 :]]
    ]


@router.post("/detokenize", response_model=Detokenized, responses=FAILURES)
async def detokenize(request: DetokenizeRequest, served: Serving) -> Response:
    """Return the text of ids."""
    served.adapter_of(request.model)
    with served.enter():
        text = await served.do(_text, served, request.tokens)
        return AsciiJson({"prompt": text, "content": text})


def _text(served: Served, ids: list[int]) -> str:
    size = served.lm.tokenizer.size
    wrong = next((id for id in ids if id >= size), None)
    if wrong is not None:
        raise ApiError(
            400, f"tokens: the tokenizer has no token {wrong}; its ids are 0 to {size - 1:,}", param="tokens"
        )
    return served.lm.tokenizer.decode(ids, special=True)
