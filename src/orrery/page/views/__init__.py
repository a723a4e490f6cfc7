"""Views: each is what one picture of the page shows, as numbers with the checks that they satisfy."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.page.views._payload import Payload
    from orrery.page.views._view import View, ViewSubject, find, names, register

__all__ = ["Payload", "View", "ViewSubject", "find", "names", "register"]


__getattr__ = lazily(__name__, {"_payload": ["Payload"], "_view": ["ViewSubject", "View", "find", "names", "register"]})
