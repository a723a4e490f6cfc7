"""Sequence to sequence: each target token from the source and the true tokens before it."""

from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import UsageError
from orrery.objectives import Objective, Term, register
from orrery.objectives._next_token import counts, loss
from orrery.schema.numbers import Fraction
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer


@register
class SequenceToSequence(Objective):
    """``-log p(y_t | x, y_<t)`` in nats, with the true ``y_<t`` whatever the model would have written.

    This is teacher forcing (Williams and Zipser 1989). A batch has ``source``, ``source_real``, ``ids`` (the start
    token, then the target) and ``targets`` (the target, then the end token), -100 where there is none; label smoothing
    is that of `CausalLanguageModel`.
    """

    class Settings(Section):
        """Prediction of each target token from the source and the true tokens before it."""

        kind: Literal["seq2seq"] = "seq2seq"
        label_smoothing: Fraction = 0.0

    needs = ("source", "ids", "targets")
    metrics = ("loss", "perplexity")

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def config(self, tokenizer: "Tokenizer | None") -> dict[str, Any]:
        """Return what a target begins with: the tokenizer's start token, or its end token where it has none."""
        if tokenizer is None:
            return {}
        return {"decoder_start_token_id": tokenizer.special("start" if "start" in tokenizer.roles else "end")}

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what is no encoder-decoder over tokens, or begins its targets with another token than the tokenizer.

        Raises:
            UsageError: it is, or does.
        """
        if not spec.writes or "source" not in spec.inputs:
            hint = "name a family that reads one side and writes the other: transformer, rnnsearch, t5, bart"
            raise UsageError("the objective seq2seq needs an encoder-decoder, this model is none", hint)
        if tokenizer is None:
            return
        allowed = {tokenizer.special(role): role for role in ("start", "end") if role in tokenizer.roles}
        if spec.first_token not in allowed:
            known = ", ".join(f"{id} ({role})" for id, role in allowed.items())
            message = (
                f"the model's targets begin with token {spec.first_token}, which is no start or end of the tokenizer"
            )
            raise UsageError(message, f"leave model.config.decoder_start_token_id out, or give {known}")

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the targets that are not ignored."""
        return counts(batch)

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the main head, and the number of targets."""
        return loss(model, batch, self.label_smoothing)

    def evaluated(self) -> "SequenceToSequence":
        """Return the objective without label smoothing."""
        return SequenceToSequence()
