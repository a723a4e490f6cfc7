"""The flags of drawing tokens and of what an answer must be, which several verbs share."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from cyclopts import Parameter

from orrery.cli.numbers import within
from orrery.errors import DataError, UsageError
from orrery.schema.writing import DEMANDS, DRAWING, SETTINGS, Setting

_IN_FILES = {
    "json_schema": "A file with a JSON schema that the answer follows.",
    "grammar": "A file with a context-free grammar, in the notation of Lark, that the answer follows.",
}
"""Settings that a command line names the file of."""
Kind = TypeVar("Kind", bound=type[Any])


def with_flags(*names: str, **usual: Any) -> Callable[[Kind], Kind]:
    """Return what adds flags of settings of writing to a class of flags.

    Args:
        names: of the settings.
        usual: what holds where a flag is not given; a text says in the help what that is.
    """

    def add(kind: Kind) -> Kind:
        fields = [_flag(SETTINGS[name], usual.get(name)) for name in names]
        own = {"__doc__": kind.__doc__, "__module__": kind.__module__}
        made: Any = make_dataclass(kind.__name__, fields, bases=(kind,), frozen=True, namespace=own)
        return cast(Kind, Parameter(name="*")(made))

    return add


def _flag(setting: Setting, usual: Any) -> tuple[str, Any, Any]:
    """Return the name, the type and the default of a flag."""
    help = _IN_FILES.get(setting.name, setting.about.help)
    if isinstance(usual, str):
        help, usual = f"{help.removesuffix('.')}; by default {usual}.", None
    shown: list[Any] = [Parameter(help=help)]
    kind: Any = setting.type
    if setting.number:
        shown.append(within(setting))
    elif setting.name in _IN_FILES:
        kind = Path
    elif kind is not str:
        kind, shown = list[str], [Parameter(help=help, negative=())]
    return setting.about.flag or setting.name, Annotated[(kind | None, *shown)], field(default=usual)


def _bias(text: str) -> tuple[int, float]:
    id, equals, value = text.partition("=")
    if not equals or not re.fullmatch("[0-9]{1,9}", id) or not re.fullmatch(r"[-+.0-9eE]{1,40}", value):
        raise UsageError(f"--logit-bias {text[:40]!r} is no bias", "give ID=NUMBER, such as 262=-100")
    try:
        return int(id), float(value)
    except ValueError as error:
        raise UsageError(f"--logit-bias {text[:40]!r} is no bias", "give ID=NUMBER, such as 262=-100") from error


@with_flags(*DRAWING, temperature="0.8")
@dataclass(frozen=True)
class SamplingOptions:
    """How a token is chosen."""

    def settings(self, temperature: float | None) -> dict[str, Any]:
        """Return what was given, by name; ``temperature`` where none was."""
        given = dict(vars(self))
        if given["temperature"] is None:
            given["temperature"] = temperature
        if given["logit_bias"] is not None:
            given["logit_bias"] = dict(_bias(text) for text in given["logit_bias"])
        return given


@with_flags("stop", *DEMANDS)
@dataclass(frozen=True)
class AnswerOptions:
    """What an answer must be, and where it ends."""

    def settings(self) -> dict[str, Any]:
        """Return what was given, by name, the files read.

        Raises:
            DataError: a file that cannot be read, or holds no JSON.
        """
        given = {name: getattr(self, SETTINGS[name].about.flag or name) for name in ("stop", *DEMANDS)}
        settings_given = {name: value for name, value in given.items() if value is not None}
        if "json_schema" in settings_given:
            settings_given["json_schema"] = _schema(settings_given["json_schema"])
        if "grammar" in settings_given:
            settings_given["grammar"] = _text(settings_given["grammar"])
        return settings_given


CHOOSING, FREE = SamplingOptions(), AnswerOptions()
"""What is used unless told otherwise."""


def _schema(file: Path) -> dict[str, Any]:
    from orrery.checkpoints import strict_json

    try:
        schema = strict_json.parse(_text(file))
    except ValueError as error:
        raise DataError(f"{file} is no JSON: {error}", "give a JSON schema") from error
    if not isinstance(schema, dict):
        raise DataError(f"{file} is no JSON schema", "a schema is an object: {...}")
    return schema


def _text(file: Path) -> str:
    from orrery.checkpoints.strict_yaml import read_text

    try:
        return read_text(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"cannot read {file}: {reason}", "give the path of a UTF-8 file of a moderate size") from error
