"""What the objectives of encoder-decoders share: each target token from a source and the true tokens before it."""

from abc import ABC
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.errors import UsageError
from orrery.objectives import Objective, Term
from orrery.objectives._next_token import counts, loss

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer


class FromSource(Objective, ABC):
    """``-log p(y_t | x, y_<t)`` in nats over the targets that are not -100, with the true ``y_<t`` (teacher forcing).

    Attributes:
        label_smoothing: as in `CausalLanguageModel`.
        reads: the field of a batch that the model reads beside what it writes.
        families: those that do so.
    """

    metrics = ("loss", "perplexity")
    reads: ClassVar[str] = "source"
    families: ClassVar[str] = "transformer, rnnsearch, t5, bart"
    label_smoothing: float = 0.0

    def config(self, tokenizer: "Tokenizer | None") -> dict[str, Any]:
        """Return what a target begins with: the start token, or the end token where the former is none or framed.

        A frame that opens every text with the start token (RoBERTa's) would have it twice, and a model that has learnt
        that one follows the other may write nothing else. BART begins with the end token for that reason.
        """
        if tokenizer is None:
            return {}
        usual = "start" in tokenizer.roles and tokenizer.special("start") not in tokenizer.around([]).ids
        return {"decoder_start_token_id": tokenizer.special("start" if usual else "end")}

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what reads no source of its kind, or begins its targets with another token than the tokenizer.

        Raises:
            UsageError: it is, or does.
        """
        if not spec.writes or self.reads not in spec.inputs:
            hint = f"name a family that reads one side and writes the other: {self.families}"
            name = self.Settings.model_fields["kind"].default
            raise UsageError(f"the objective {name} needs an encoder-decoder, this model is none", hint)
        if tokenizer is None:
            return
        allowed = {tokenizer.special(role): role for role in ("start", "end") if role in tokenizer.roles}
        # T5 and Marian begin with the padding token, mBART with that of a language: any control token may be meant.
        if spec.first_token not in {*allowed, *tokenizer.control}:
            known = ", ".join(f"{id} ({role})" for id, role in allowed.items())
            message = f"the model's targets begin with token {spec.first_token}, which is no start or end or other "
            message += "control token of the tokenizer"
            raise UsageError(message, f"leave model.config.decoder_start_token_id out, or give {known}")

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the targets that are not ignored."""
        return counts(batch)

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the main head, and the number of targets."""
        return loss(model, batch, self.label_smoothing)


def taught(sources: "list[Tensor]", targets: "list[Tensor]", start: int, pad: int) -> dict[str, "Tensor"]:
    """Return rows as an encoder-decoder learns them.

    ``source`` [B S] with ``source_real``; ``ids`` [B L], the start token and then the target; ``targets`` [B L].
    Padding stands on the right and counts for nothing.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from orrery.nn.cross_entropy import IGNORED

    lengths_B = torch.tensor([len(row) for row in sources])
    source_BS = pad_sequence(sources, batch_first=True, padding_value=pad)
    targets_BL = pad_sequence(targets, batch_first=True, padding_value=IGNORED)
    before_BL = targets_BL[:, :-1].masked_fill(targets_BL[:, :-1] == IGNORED, pad)
    return {
        "source": source_BS,
        "source_real": torch.arange(source_BS.shape[1]) < lengths_B[:, None],
        "ids": torch.cat([before_BL.new_full((len(targets), 1), start), before_BL], 1),
        "targets": targets_BL,
    }
