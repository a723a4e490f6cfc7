"""The flags of drawing tokens and of what an answer must be, which several verbs share."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from orrery.cli.numbers import ABOVE_ZERO, COUNT, NOT_NEGATIVE, NUMBER, SHARE
from orrery.errors import DataError, UsageError

_TEMPERATURE = "Divides the logits, 0.8 by default; 0 always takes the most probable token."
_TYPICAL = "The mass of the most typical tokens that stays possible."
_WINDOW = "How many of the last tokens that penalty counts; all of them by default."
_PRESENCE = "Taken from the logit of each token of the answer."
_FREQUENCY = "The same, once for each time that the answer holds the token."
_BIAS = "Added to the logit of a token, as ID=NUMBER; -100 forbids it; may be given several times."
_BAD = "A string that must not stand in the answer; may be given several times."
_SCHEMA = "A file with a JSON schema that the answer follows."
_GRAMMAR = "A file with a context-free grammar, in the notation of Lark, that the answer follows."
_STOP = "A string that ends the answer; may be given several times."


def _bias(text: str) -> tuple[int, float]:
    id, equals, value = text.partition("=")
    if not equals or not re.fullmatch("[0-9]{1,9}", id) or not re.fullmatch(r"[-+.0-9eE]{1,40}", value):
        raise UsageError(f"--logit-bias {text[:40]!r} is no bias", "give ID=NUMBER, such as 262=-100")
    try:
        return int(id), float(value)
    except ValueError as error:
        raise UsageError(f"--logit-bias {text[:40]!r} is no bias", "give ID=NUMBER, such as 262=-100") from error


@Parameter(name="*")
@dataclass(frozen=True)
class Drawing:
    """How a token is chosen."""

    temperature: Annotated[float | None, NOT_NEGATIVE, Parameter(help=_TEMPERATURE)] = None
    top_k: Annotated[int | None, COUNT, Parameter(help="How many tokens stay possible.")] = None
    top_p: Annotated[float | None, SHARE, Parameter(help="The probability mass that stays possible.")] = None
    min_p: Annotated[float | None, SHARE, Parameter(help="The least probability, as a share of the greatest.")] = None
    typical_p: Annotated[float | None, SHARE, Parameter(help=_TYPICAL)] = None
    repetition_penalty: Annotated[
        float | None, ABOVE_ZERO, Parameter(help="Above 1 discourages tokens that the text holds already.")
    ] = None
    repetition_window: Annotated[int | None, COUNT, Parameter(help=_WINDOW)] = None
    presence_penalty: Annotated[float | None, NUMBER, Parameter(help=_PRESENCE)] = None
    frequency_penalty: Annotated[float | None, NUMBER, Parameter(help=_FREQUENCY)] = None
    logit_bias: Annotated[list[str] | None, Parameter(help=_BIAS, negative=())] = None

    def settings(self, temperature: float | None) -> dict[str, Any]:
        """Return what was given, by name; ``temperature`` where none was."""
        chosen = temperature if self.temperature is None else self.temperature
        bias = None if self.logit_bias is None else dict(_bias(text) for text in self.logit_bias)
        return {**vars(self), "temperature": chosen, "logit_bias": bias}


@Parameter(name="*")
@dataclass(frozen=True)
class Answer:
    """What an answer must be, and where it ends."""

    stop: Annotated[list[str] | None, Parameter(negative=(), help=_STOP)] = None
    bad_word: Annotated[list[str] | None, Parameter(negative=(), help=_BAD)] = None
    regex: Annotated[str | None, Parameter(help="A regular expression that the whole answer matches.")] = None
    json_schema: Annotated[Path | None, Parameter(help=_SCHEMA)] = None
    grammar: Annotated[Path | None, Parameter(help=_GRAMMAR)] = None

    def settings(self) -> dict[str, Any]:
        """Return what was given, by name, the files read.

        Raises:
            DataError: a file that cannot be read, or holds no JSON.
        """
        from orrery.checkpoints import strict_json

        schema = None
        if self.json_schema is not None:
            try:
                schema = strict_json.parse(_text(self.json_schema))
            except ValueError as error:
                raise DataError(f"{self.json_schema} is no JSON: {error}", "give a JSON schema") from error
            if not isinstance(schema, dict):
                raise DataError(f"{self.json_schema} is no JSON schema", "a schema is an object: {...}")
        found = {"stop": self.stop, "bad_words": self.bad_word, "regex": self.regex, "json_schema": schema}
        grammar = None if self.grammar is None else _text(self.grammar)
        return {name: value for name, value in {**found, "grammar": grammar}.items() if value is not None}


CHOOSING, FREE = Drawing(), Answer()
"""What is used unless told otherwise."""


def _text(file: Path) -> str:
    from orrery.checkpoints.strict_yaml import read_text

    try:
        return read_text(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"cannot read {file}: {reason}", "give the path of a UTF-8 file of a moderate size") from error
