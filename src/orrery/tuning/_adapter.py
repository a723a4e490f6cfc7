"""What all adapters share: parameters of their own learn, and everything else is frozen but what is asked for."""

from abc import abstractmethod
from fnmatch import fnmatchcase

from torch import nn

from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.tuning._transform import Transform


class Adapter(Transform):
    """A transform that adds what learns to a model that is frozen; each has a field ``learn``, its last.

    Attributes:
        learn: patterns of parameters of the model that learn too, as a new head must (peft's ``modules_to_save``).
    """

    learn: tuple[str, ...]

    def apply(self, model: Model, seed: int = 1337) -> Model:
        """Add the adapter; then it learns, what earlier adapters let learn does, and what ``learn`` names.

        Raises:
            UsageError: the model has nothing that the settings name, or what they name cannot be changed so.
        """
        self._refuse_unknown(model)
        adapted = any(isinstance(transform, Adapter) for transform in model.transforms)
        there = {id(parameter): adapted and parameter.requires_grad for parameter in model.parameters()}
        self.add(model, seed)
        learning = {id(parameter) for _, parameter in self.asked(model)}
        for parameter in model.parameters():
            parameter.requires_grad_(there.get(id(parameter), True) or id(parameter) in learning)
        model.transforms = (*model.transforms, self)
        return model

    @abstractmethod
    def add(self, model: Model, seed: int) -> None:
        """Add the adapter's parts to a model in place, as ``apply`` says."""

    def asked(self, model: nn.Module) -> list[tuple[str, nn.Parameter]]:
        """Return the parameters that ``learn`` names, under every name that they have."""
        named = model.named_parameters(remove_duplicate=False)
        return [(name, p) for name, p in named if any(fnmatchcase(name, pattern) for pattern in self.learn)]

    def _refuse_unknown(self, model: nn.Module) -> None:
        """Refuse a pattern that names no parameter, or one of whole numbers, before anything is changed."""
        names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
        for pattern in self.learn:
            if not any(fnmatchcase(name, pattern) for name in names):
                message = f"{self.kind}: learn: no parameter is called {pattern!r}"
                raise UsageError(message, f"names look like {', '.join(names[:3])}")
        for name, parameter in self.asked(model):
            if not parameter.is_floating_point():
                message = f"{self.kind}: learn: {name} is stored in whole numbers, which no gradient can change"
                raise UsageError(message, "name parameters that are not quantised")
