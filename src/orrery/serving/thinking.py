"""How much a model is to reason before it answers, as its chat template can be told."""

import re
from typing import Any

from orrery.serving.errors import ApiError
from orrery.text.chat.reasoning import reasoning_marks

EFFORT = "reasoning_effort"
"""The variable of templates that grade it (gpt-oss)."""
SWITCHES = ("enable_thinking", "thinking")
"""Those of templates that turn it on and off: Qwen3, SmolLM3 and GLM; DeepSeek V3.1 and Granite."""


def thinking(source: str, wanted: bool | str | None) -> dict[str, Any]:
    """Return the variables of a template with which a model reasons as wanted.

    Args:
        source: the template.
        wanted: on or off, a grade such as ``low``, or ``none``, which is off; a grade turns a switch on.

    Raises:
        ApiError: the template cannot be told so.
    """
    if wanted is None:
        return {}
    off = wanted in (False, "none")
    if grades(source):
        if off:
            raise _refusal("this model always reasons; its template takes low, medium and high")
        return {EFFORT: wanted} if isinstance(wanted, str) else {}
    for name in SWITCHES:
        if _reads(source, name):
            return {name: not off}
    reasons = reasoning_marks(source) is not None
    if off and reasons:
        raise _refusal("this model's template has no switch for its reasoning")
    if not off and not (reasons and wanted is True):
        raise _refusal("this model's template knows of no reasoning that could be graded")
    return {}


def grades(source: str) -> bool:
    """Say whether a template grades reasoning."""
    return _reads(source, EFFORT)


def _reads(source: str, name: str) -> bool:
    """Say whether a template has a variable: neither a field of something nor a word of a text."""
    return re.search(rf"(?<![\w.'\"]){name}(?![\w'\"])", source) is not None


def _refusal(reason: str) -> ApiError:
    return ApiError(400, f"{EFFORT} is not supported: {reason}", param=EFFORT, code="unsupported_parameter")
