"""Views: each is what one picture of the page shows, as numbers with the checks that they satisfy."""

from orrery.views._view import View, find, names, register

__all__ = ["View", "find", "names", "register"]
