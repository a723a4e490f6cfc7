"""Where the matrices and the other tensors of a model lie in the modules of the reference library."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from orrery.checkpoints.layouts import ROWS, TURNED, GroupInterleaved, Layout
from orrery.checkpoints.rules import Rule
from orrery.errors import UsageError
from orrery.families import load_family, rules_of
from orrery.models.model import Model
from orrery.tuning._linear import TransformedLinear

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BASE_CONFIG = "config.json"
"""What makes a folder a whole model of the Hugging Face layout, where weights stand beside it."""
HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
"""What a model on the hub is called."""
PREFIX = "base_model.model."
"""What peft puts before every name."""
SIDES = tuple(f".lora_{side}.weight" for side in "AB")
"""What peft puts behind the name of a module for the two matrices of its adapter."""


@runtime_checkable
class Adaptable(Protocol):
    """A model that knows its family and where it came from: a ``LanguageModel``, or what ``read`` returns."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def family(self) -> str | None:
        """The ``model_type``."""

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The family's configuration."""

    @property
    def folder(self) -> Path:
        """Where it was found."""


@dataclass(frozen=True)
class PeftTensor:
    """A tensor of the reference, and ours that it is made of.

    Attributes:
        theirs: its name.
        ours: the names of ours.
        rule: how it is made of them.
    """

    theirs: str
    ours: tuple[str, ...]
    rule: Rule

    @property
    def module(self) -> str:
        """The module that owns it."""
        return self.theirs.rpartition(".")[0]

    @property
    def linears(self) -> tuple[str, ...]:
        """The names of our linears, where the tensor is made of their matrices."""
        return tuple(name.removesuffix(".weight") for name in self.ours)

    @property
    def turned(self) -> bool:
        """Whether the reference stores rows and columns exchanged, as GPT-2 does."""
        return self.rule.layout == TURNED

    @property
    def rows(self) -> Layout | None:
        """How output rows of ours lie among theirs, where a product with B can follow."""
        layout = self.rule.layout
        return ROWS if layout in (ROWS, TURNED) else layout if isinstance(layout, GroupInterleaved) else None


def places_of(owner: Adaptable) -> dict[str, PeftTensor]:
    """Return every tensor of the reference by its name.

    Raises:
        UsageError: the model belongs to no family, whose names peft could know.
    """
    if owner.family is None:
        message = f"{owner.folder} belongs to no family, and peft's files name the modules of transformers"
        raise UsageError(message, "keep the adapter in our own layout: lm.save(folder, layout='own')")
    names = [name for name, _ in owner.model.named_parameters(remove_duplicate=False)]
    rules = rules_of(load_family(owner.family), owner.config or {})
    places = (PeftTensor(theirs, ours, rule) for rule in rules for theirs, ours in rule.places(names))
    return {place.theirs: place for place in places}


def matrices_of(model: nn.Module, places: Mapping[str, PeftTensor]) -> dict[str, PeftTensor]:
    """Return the matrices that peft can adapt, by the reference's module."""
    linears = {
        name
        for name, part in model.named_modules(remove_duplicate=False)
        if isinstance(part, nn.Linear | TransformedLinear)
    }
    return {
        place.module: place
        for place in places.values()
        if place.theirs.endswith(".weight") and linears.issuperset(place.linears) and place.rows is not None
    }
