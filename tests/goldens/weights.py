"""The weights that a formula asks for, by name."""

from collections.abc import Callable

from torch import Tensor

from orrery.laws.formula import numbers

VOCABULARY, WIDTH = 61, 12
Formula = Callable[..., Tensor]


class Weights(dict[str, Tensor]):
    """The weights that a formula has asked for, by name: each begins as formula numbers of its name."""

    def take(self, name: str, *shape: int) -> Tensor:
        """Return a weight."""
        if name not in self:
            self[name] = numbers(name, shape).requires_grad_()
        return self[name]

    def linear(self, name: str, x: Tensor, outputs: int, bias: bool = True) -> Tensor:
        """Return ``W x + b`` of one vector."""
        y = self.take(f"{name}.weight", outputs, len(x)) @ x
        return y + self.take(f"{name}.bias", outputs) if bias else y

    def words(self, ids: Tensor, width: int = WIDTH, table: str = "embed.token.weight") -> list[Tensor]:
        """Return the vectors of words."""
        return list(self.take(table, VOCABULARY, width)[ids])

    def head(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return self.linear("head.vocabulary", x, VOCABULARY)
