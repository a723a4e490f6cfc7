"""A head on every token: tags, ends of answers, values."""

from typing import TYPE_CHECKING, Literal

from orrery.models.heads import Head, HeadSettings, register
from orrery.schema.numbers import Positive

if TYPE_CHECKING:
    from orrery.nn.spec import ModuleSpec


class TokenSettings(HeadSettings):
    """``labels`` scores for every token."""

    kind: Literal["token"] = "token"
    labels: Positive


@register
class Token(Head):
    """``W x + b`` for every token."""

    Settings = TokenSettings

    @staticmethod
    def spec(settings: TokenSettings) -> "ModuleSpec":
        """Return a linear head."""
        from orrery.nn.heads import TokenHead

        return TokenHead.Spec(labels=settings.labels)
