"""Log probabilities of replies, which all objectives over preferences share."""

from abc import ABC
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.errors import UsageError
from orrery.objectives import Objective
from orrery.objectives._real import with_real
from orrery.schema.registry import label_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Float
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives._reference import Reference
    from orrery.text.tokenizer import Tokenizer


class OnReplies(Objective, ABC):
    """An objective over whole replies of a decoder.

    A batch has ``ids``, ``real`` and ``reply``: the tokens, which of them are no padding, and which of them a reply
    consists of, its end token among them. Their first axis counts examples, so that what belongs together stays
    together however a batch is split; of pairs the second is chosen and rejected, [B, 2, L].
    """

    needs: ClassVar[tuple[str, ...]] = ("ids", "real", "reply")

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what is no decoder.

        Raises:
            UsageError: the model does not continue what it reads.
        """
        if not spec.writes or spec.reads_source:
            message = f"the objective {label_of(type(self))} needs a decoder, this model is none"
            raise UsageError(message, "begin from a language model: model.from")


class AgainstReference(OnReplies, ABC):
    """An objective that measures replies against the model as it was when the run began, which it owns."""

    reference: "Reference"

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Make the reference: a frozen copy of the model."""
        from orrery.objectives._reference import Reference

        self.reference = Reference(model)
        return {"reference": self.reference}

    def check(self) -> None:
        """Refuse to go on with a reference that is not what it was.

        Raises:
            RunError: a weight of it has changed.
        """
        self.reference.check()


def token_log_probabilities(model: Any, batch: "Batch") -> "Float[Tensor, '*rows L-1']":
    """Return ``log p(x_t | x_<t)`` in nats of each token of a reply, and 0 at the others.

    Only the positions before tokens of a reply go through the head.

    Shapes: a batch of rows ``[..., L]`` to ``[..., L - 1]``: the first token of a row is not predicted.
    """
    from orrery.nn.cross_entropy import head_log_probabilities

    ids_RL, real_RL, reply_RL = (batch[name].flatten(0, -2) for name in ("ids", "real", "reply"))
    kept_RL, targets_RL = reply_RL[:, 1:], ids_RL[:, 1:]

    def of_replies(head: "nn.Module", x_RLD: "Tensor", real_RL: "Tensor | None") -> "Tensor":
        found_N = head_log_probabilities(head, x_RLD[:, :-1][kept_RL], targets_RL[kept_RL])
        return found_N.new_zeros(kept_RL.shape).masked_scatter(kept_RL, found_N)

    (found_RL,) = model(with_real({"ids": ids_RL}, real_RL), {model.spec.head_names[0]: of_replies}).values()
    shaped: Tensor = found_RL.view(batch["reply"][..., 1:].shape)
    return shaped


def reply_lengths(batch: "Batch") -> "Float[Tensor, '*rows']":
    """Return how many tokens of each reply are predicted. Shapes: ``[..., L]`` to ``[...]``."""
    lengths: Tensor = batch["reply"][..., 1:].sum(-1)
    return lengths
