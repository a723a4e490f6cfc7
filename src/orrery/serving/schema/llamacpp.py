"""What clients of llama.cpp's server ask under its own paths."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from orrery.serving.errors import ApiError
from orrery.serving.schema import other_names
from orrery.serving.schema.chat import MOST_MESSAGES, MOST_TOOLS, Message, TemplateVariables, Tool
from orrery.serving.schema.fields import Body, Text
from orrery.serving.schema.reading import MOST_INPUTS, Given

USUAL: Mapping[str, Any] = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""What llama.cpp draws with where neither a request nor a model says anything."""


def as_completion(given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of ``/completion`` or ``/infill`` as that of ``/v1/completions``.

    Raises:
        ApiError: fields that ask for something that is not done.
    """
    own = {**usual, **{name: value for name, value in given.items() if value is not None}}
    if own.get("input_extra"):
        reason = "input_extra is not supported: put it in front of input_prefix"
        raise ApiError(400, reason, param="input_extra", code="unsupported_parameter")
    if own.get("n_predict") == 0:
        raise ApiError(
            400, "an answer has at least one token: POST /tokenize counts those of a prompt", param="n_predict"
        )
    if "input_prefix" in own or "input_suffix" in own:
        for name in ("input_prefix", "input_suffix", "prompt"):
            if not isinstance(own.get(name, ""), str):
                reason = f"{name}: with input_prefix or input_suffix it is a text"
                raise ApiError(400, reason, param=name, code="invalid_value")
        own["prompt"] = f"{own.pop('input_prefix', '')}{own.get('prompt', '')}"
        own["suffix"] = own.pop("input_suffix", "")
    for name, unbounded in (("seed", (-1,)), ("n_predict", (-1, -2)), ("max_tokens", (-1, -2))):
        if own.get(name) in unbounded:
            del own[name]
    return own


class LlamaCompletion(BaseModel):
    """The answer of ``/completion``; in a stream, a part of it."""

    content: str
    stop: bool
    model: str
    tokens_predicted: int
    tokens_evaluated: int
    stop_type: str
    stopping_word: str


class TemplateRequest(Body):
    """A conversation that is put into the model's template."""

    UNSUPPORTED: ClassVar = {"chat_template": other_names.UNSUPPORTED["chat_template"][1]}

    model: Text | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)]
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    chat_template_kwargs: TemplateVariables | None = None


class ContentRequest(Body):
    """Texts to be turned into vectors."""

    UNSUPPORTED: ClassVar = {"embd_normalize": "POST /embed takes normalize"}
    NEUTRAL: ClassVar = {"embd_normalize": (2,)}

    model: Text | None = None
    content: Given | Annotated[list[Given], Field(min_length=1, max_length=MOST_INPUTS)]
