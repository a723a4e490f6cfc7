"""One file per model family: a function from its configuration to a spec, and the rules of its weight files."""

from orrery.families._registry import Family, load_family, names, register

__all__ = ["Family", "load_family", "names", "register"]
