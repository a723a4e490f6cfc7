"""The settings of writing, shown one by one where a method takes them as ``**settings``: to ``help``, to notebooks."""

import re
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar, get_type_hints

from orrery.schema.writing import SETTINGS

Method = TypeVar("Method", bound=Callable[..., Any])


def spelling_out(group: type) -> Callable[[Method], Method]:
    """Return what names the settings of a group in the signature of a method and in the arguments of its docstring.

    Type checkers read the same group in the annotation of ``**settings``.
    """
    hints = get_type_hints(group)
    keywords = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in hints.items()]

    def show(method: Method) -> Method:
        known = signature(method)
        named = [one for one in known.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        method.__signature__ = known.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]
        method.__doc__ = re.sub(r"( +)settings: .*", lambda match: _lines(hints, match[1]), method.__doc__ or "")
        return method

    return show


def _lines(names: Any, indent: str) -> str:
    return "\n".join(f"{indent}{name}: {_said(SETTINGS[name].about.help)}" for name in names)


def _said(help: str) -> str:
    return help[0].lower() + help[1:]
