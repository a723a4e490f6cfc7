"""A second term of the loss of language models: how evenly a mixture of experts is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orrery.errors import UsageError
from orrery.objectives import Term

if TYPE_CHECKING:
    from orrery.models.inputs import Batch
    from orrery.models.model import Answer, ModelSpec
    from orrery.nn.feedforward.routing import Routing

TERM = "balance"


@dataclass(frozen=True)
class Balance:
    """``weight * X sum_e f_e P_e``, as `orrery.nn.feedforward.routing.balance` has it; nothing where the weight is 0.

    Both means are over all tokens of a batch, so that the batch cannot be split. Differs from transformers, which takes
    them over each micro-batch by itself.
    """

    weight: float = 0.0

    @property
    def reports(self) -> tuple[str, ...]:
        """The term, where there is one."""
        return (TERM,) if self.weight else ()

    def bind(self, spec: "ModelSpec") -> None:
        """Refuse a model whose load cannot be evened.

        Raises:
            UsageError: it has no mixture, or its mixtures differ in their experts.
        """
        if not self.weight:
            return
        from orrery.nn.feedforward.moe import MoE
        from orrery.nn.spec import traverse

        numbers = {part.router.experts for _, part in traverse(spec) if isinstance(part, MoE.Spec)}
        if len(numbers) != 1:
            has = f"has mixtures of {' and '.join(map(str, sorted(numbers)))}" if numbers else "has none"
            message = f"objective.balance needs mixtures of equally many experts, this model {has}"
            raise UsageError(message, "leave objective.balance out, or name a family with experts, such as mixtral")

    def counts(self) -> dict[str, int]:
        """Count the term once, where there is one: it is a product of means already."""
        return dict.fromkeys(self.reports, 1)

    def call(
        self, model: Any, batch: "Batch", heads: "Mapping[str, Answer]"
    ) -> tuple[Mapping[str, Any], dict[str, Term]]:
        """Return what a model's heads answer, and the term, where there is one."""
        if not self.weight:
            return model(batch, heads), {}
        from orrery.nn.context import Execution
        from orrery.nn.feedforward.routing import balance
        from orrery.objectives._real import real_tokens

        routings: list[Routing] = []
        answers = model(batch, heads, Execution(routings=routings))
        return answers, {TERM: Term(balance(routings, real_tokens(batch)), 1, self.weight, coupled=True)}
