"""What an observer is: it is told what happens in a run, and changes nothing of it."""

import importlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from orrery.errors import MachineError
from orrery.reports.observers._events import Event
from orrery.schema.registry import Registry
from orrery.schema.section import Section
from orrery.settings import install

OBSERVED = "observers"
"""The folder in that of a run which observers write into: it is resumed and replaced with the run."""


class Observer(ABC):
    """Somebody who is told of a run as it goes, by the process that writes its folder.

    One file each, ``reports/observers/NAME.py``; a program defines its own and makes it known with ``register``. The
    keywords of its constructor are the fields of its settings but ``kind``. It is made before anything is read: a
    package that is missing is refused there.

    Attributes:
        Settings: its section of a recipe; the default of ``kind`` is its name.
    """

    Settings: ClassVar[type[Section]]

    @classmethod
    def of(cls, settings: Section) -> "Observer":
        """Return the observer that settings describe."""
        return cls(**{name: getattr(settings, name) for name in type(settings).model_fields if name != "kind"})

    @abstractmethod
    def observe(self, event: Event) -> None:
        """Take note of what happened; an observer passes over the events that it has no use for."""


OBSERVERS: Registry[Any] = Registry("observer", "orrery.reports.observers")
register = OBSERVERS.register


def place(folder: Path) -> Path:
    """Return the folder for what observers write, in that of a run; it is made where it is not there."""
    (folder / OBSERVED).mkdir(exist_ok=True)
    return folder / OBSERVED


def package(module: str, name: str) -> Any:
    """Return a module of a package that an observer is called after, as are the package's extra and what pip knows.

    Raises:
        MachineError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        message = f"the observer {name} needs the package {name}, which is not installed"
        raise MachineError(message, f"{install(name)}, or pip install {name}") from None
