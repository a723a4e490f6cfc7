"""A section of settings: closed and checked, frozen, and read without torch."""

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Discriminator, model_validator
from pydantic_core import PydanticCustomError


class Section(BaseModel):
    """A closed group of settings: an unknown key, NaN and infinity are errors."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in values if isinstance(values, Mapping) else ():
            if key not in known:
                close = difflib.get_close_matches(str(key), known, n=1)
                advice = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
                context = {"key": str(key), "advice": advice}
                raise PydanticCustomError("unknown_key", "unknown key; {advice}", context)
        return values


def kind_or(default: str, *others: str) -> Discriminator:
    """Choose a section's class by its ``kind``, which may be left out."""

    def kind(values: Any) -> Any:
        return values.get("kind", default) if isinstance(values, Mapping) else getattr(values, "kind", None)

    message = f"kind must be one of {', '.join((default, *others))}"
    return Discriminator(kind, custom_error_type="kind", custom_error_message=message)
