"""What each head does: how far it looks at the token before, at a copy, at the first, and how it spreads."""

from collections.abc import Iterable
from typing import ClassVar

from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.page.views.attention import rows_of, site_of
from orrery.schema.section import Section


class HeadsSettings(Section):
    """What can be asked.

    Attributes:
        site: which attention, by its number in the session.
    """

    site: int = 0


@register
class HeadsView(View):
    """Scores from 0 to 1 that say which role a head plays in this pass, and the entropy of its rows."""

    kind: ClassVar[str] = "heads"
    order: ClassVar[int] = 45
    compares: ClassVar[bool] = True
    Settings: ClassVar[type[Section]] = HeadsSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether tokens look at tokens of the same row."""
        return subject.inside is not None and any(site.queries == site.keys for site in subject.inside.sites)

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return each attention of tokens over tokens of the same row."""
        sites = subject.seen.sites
        yield from (HeadsSettings(site=n) for n, site in enumerate(sites) if site.queries == site.keys)

    def payload(self, subject: ViewSubject, settings: HeadsSettings) -> Payload:
        """Return the scores of every head of one attention."""
        inside = subject.seen
        site = site_of(inside, settings.site)
        roles = inside.keeping("*.pattern").head_roles(site.path)
        tensors = {role: score_NH.float() for role, score_NH in roles.score_NH.items()}
        return Payload(
            {"site": settings.site, "layers": site.layers, "roles": list(tensors)},
            tensors,
            [rows_of(inside, site, *site.layers)],
        )
