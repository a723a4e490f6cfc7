"""What a model is given to learn with: minutes of training, or steps."""

from dataclasses import dataclass

Amount = int | float
"""Minutes, or a whole number of steps."""


@dataclass(frozen=True, order=True)
class Budget:
    """An amount of minutes or of steps; the same unit for all of a comparison."""

    amount: Amount
    unit: str

    @property
    def steps(self) -> int | None:
        """The steps, where the budget is in steps."""
        return int(self.amount) if self.unit == "steps" else None

    @property
    def seconds(self) -> float:
        """The seconds of training; none where the budget is in steps."""
        return 60 * self.amount if self.unit == "minutes" else 0.0

    @property
    def label(self) -> str:
        """The budget in words."""
        count = f"{self.amount:,.0f}" if self.unit == "steps" else f"{self.amount:g}"
        return f"{count} {self.unit.removesuffix('s') if self.amount == 1 else self.unit}"

    @property
    def place(self) -> str:
        """The budget in the name of a folder."""
        return f"{self.amount:g}-{self.unit}"

    def part(self, share: float) -> "Budget":
        """Return a part of the budget, at least one step."""
        if self.unit == "steps":
            return Budget(max(1, round(share * self.amount)), "steps")
        return Budget(share * self.amount, "minutes")
