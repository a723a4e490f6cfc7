"""The program ``orrery``: one module per verb, imported only when that verb runs."""

from typing import Any

__all__ = ["main"]


def __getattr__(name: str) -> Any:
    if name == "main":
        from orrery.cli.program import main

        return main
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
