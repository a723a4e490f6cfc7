"""A head on every token: tags, ends of answers, values."""

from typing import TYPE_CHECKING, Literal

from orrery.models.heads import Head, HeadSettings, register
from orrery.models.heads._head import counted
from orrery.schema.numbers import Positive

if TYPE_CHECKING:
    from orrery.nn.spec import ModuleSpec


class TokenSettings(HeadSettings):
    """``labels`` scores for every token; an objective that learns labels fills in how many, and their names."""

    kind: Literal["token"] = "token"
    labels: Positive | None = None
    names: tuple[str, ...] = ()


@register
class Token(Head):
    """``W x + b`` for every token."""

    Settings = TokenSettings

    @staticmethod
    def spec(settings: TokenSettings) -> "ModuleSpec":
        """Return a linear head."""
        from orrery.nn.heads import TokenHead

        return TokenHead.Spec(labels=counted(settings.labels, settings.kind), names=settings.names)
