"""The program ``orrery``: one module per verb, imported only when that verb runs."""

__all__ = ["main"]


def __getattr__(name: str) -> object:
    if name == "main":
        from orrery.cli.start import main

        return main
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
