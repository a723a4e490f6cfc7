"""The form that an answer is asked to have: OpenAI's ``response_format``, and what other servers call the same.

Clients that were written for vLLM, SGLang, llama.cpp or text-generation-inference send their names. What is not read
would be an answer of another form, without a word.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from orrery.serving.errors import ApiError
from orrery.serving.schema.fields import Flag, RequestPart, Text

FIELD = "response_format"
_SCHEMAS = ("guided_json", "json_schema")
"""Fields of requests that hold a JSON schema, or its text: vLLM's; llama.cpp's and SGLang's."""
_REGEXES = ("guided_regex", "regex")
_CHOICES = ("guided_choice",)
_GRAMMARS = ("guided_grammar", "grammar", "ebnf")
_NAMES = (*_SCHEMAS, *_REGEXES, *_CHOICES, *_GRAMMARS)
_TOGETHER = "structured_outputs"
"""The field of vLLM that holds one of the forms below."""
_INSIDE = ("json", "regex", "choice", "grammar", "structural_tag", "json_object")
_NOTHING: tuple[Any, ...] = (None, False, "", [])
"""Values with which a field asks for no form."""
_SPECIAL = set(r"\.+*?()|[]{}^$")


class JsonSchema(BaseModel):
    """A schema that the answer follows."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())

    name: Text | None = None
    description: Text | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: Flag | None = None


class ResponseFormat(RequestPart):
    """What the answer looks like; ``json_object`` with a ``schema`` or ``value`` is ``json_schema``."""

    type: Literal["text", "json_object", "json_schema", "regex"]
    json_schema: JsonSchema | None = None
    regex: Text | None = Field(None, description="For the type regex: the whole answer matches it.")

    @model_validator(mode="before")
    @classmethod
    def _of_other_servers(cls, given: Any) -> Any:
        """Take the schema beside ``json_object`` (llama.cpp, Together) and the ``value`` of any type (Hugging Face)."""
        if not isinstance(given, Mapping):
            return given
        kind = given.get("type")
        own = given.get("schema", given.get("value"))
        if kind in ("json", "json_object") or (kind == "json_schema" and given.get("json_schema") is None):
            if own is not None:
                named = isinstance(own, Mapping) and "schema" in own and "properties" not in own
                inside = own if named else {"schema": own}
                return {"type": "json_schema", "json_schema": inside}
            return {**given, "type": "json_object"} if kind == "json" else given
        if kind == "regex":
            return {"type": "regex", "regex": given.get("regex", given.get("value", given.get("pattern")))}
        return given

    @model_validator(mode="after")
    def _is_whole(self) -> "ResponseFormat":
        if self.type in ("json_schema", "regex") and getattr(self, self.type) is None:
            raise ApiError(400, f"{FIELD} needs its {self.type}", param=f"{FIELD}.{self.type}")
        return self

    @property
    def demanded(self) -> dict[str, Any]:
        """What the answer must be, as `Demands.of` takes it."""
        if self.type == "text":
            return {}
        if self.type == "regex":
            return {"regex": self.regex}
        return {"json_schema": (self.json_schema.schema_ if self.json_schema is not None else None) or {}}


def with_response_format(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request whose form stands in ``response_format``, under whatever name it was sent.

    Raises:
        ApiError: two forms, a grammar, or a schema that is no JSON.
    """
    asked = {FIELD: given[FIELD]} if _says(given.get(FIELD)) else {}
    asked |= {name: _format(name, given[name]) for name in _NAMES if given.get(name) not in _NOTHING}
    together = given.get(_TOGETHER) or {}
    if not isinstance(together, Mapping):
        raise ApiError(400, f"{_TOGETHER} is an object that holds one form", param=_TOGETHER)
    inside = {name: together[name] for name in _INSIDE if together.get(name) not in _NOTHING}
    asked |= {f"{_TOGETHER}.{name}": _format(name, value) for name, value in inside.items()}
    if len(asked) > 1:
        raise ApiError(400, f"an answer has one form: {' and '.join(asked)} ask for more", param=list(asked)[-1])
    return {**given, FIELD: next(iter(asked.values()))} if asked else given


def _says(form: Any) -> bool:
    return form is not None and not (isinstance(form, Mapping) and form.get("type") == "text")


def _format(name: str, value: Any) -> dict[str, Any]:
    """Return what a field of another server asks for, as ``response_format`` says it."""
    if name in (*_GRAMMARS, "structural_tag"):
        message = f"{name} is not supported: send a JSON schema or a regular expression as {FIELD}"
        raise ApiError(400, message, param=name, code="unsupported_parameter")
    if name in _REGEXES:
        if not isinstance(value, str):
            raise ApiError(400, f"{name} is a regular expression, as a text", param=name)
        return {"type": "regex", "regex": value}
    if name in ("choice", *_CHOICES):
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise ApiError(400, f"{name} is a list of texts", param=name)
        return {"type": "regex", "regex": "|".join(map(_literally, value))}
    if name == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"schema": _schema(name, value)}}


def _literally(text: str) -> str:
    """Return the regular expression of a text."""
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in text)


def _schema(name: str, value: Any) -> Any:
    """Return a JSON schema, which may come as its text."""
    try:
        schema = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"{name} is no JSON that can be read: {error}", param=name) from None
    if not isinstance(schema, Mapping):
        raise ApiError(400, f"{name} is a JSON schema: an object, or its text", param=name)
    return schema
