"""What a table of refusals asks of each row: the class of the error, what it says, and what to do."""

from collections.abc import Callable
from typing import Any

import pytest

from orrery.errors import OrreryError

Refused = tuple[Callable[..., Any], type[OrreryError], str, str]
"""What is called, the class, a pattern of the message, and a part of the hint."""


def check(case: Refused, *given: Any) -> None:
    """Call what must be refused, and hold how it is."""
    call, error, says, hint = case
    with pytest.raises(error, match=says) as refused:
        call(*given)
    assert type(refused.value) is error
    assert hint in refused.value.hint
