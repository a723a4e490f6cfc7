"""Distillation: a student learns a teacher's distribution of each next token, and not only which token came."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import UsageError
from orrery.objectives import Objective, Term, register
from orrery.objectives._next_token import TERM as NEXT_TOKEN
from orrery.schema.numbers import AboveZero, NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives._reference import Reference
    from orrery.text.tokenizer import Tokenizer

DIVERGENCE = "divergence"


@register
class Distillation(Objective):
    """``T^2 KL(softmax(t / T) || softmax(s / T)) + weight * (-log p_s(target))`` in nats, the mean over targets.

    ``t`` and ``s`` are the logits of teacher and student at each target that is not -100. Hinton et al. 2015, section
    2; ``T^2`` keeps the gradient's size. The teacher has the student's vocabulary, is not trained, and is saved with
    the run. A batch has what the model reads, and ``targets`` [B L].
    """

    class Settings(Section):
        """``teacher`` is a run or a folder; ``weight`` that of the data's own targets."""

        kind: Literal["distillation"] = "distillation"
        teacher: str
        temperature: AboveZero = 1.0
        weight: NotNegative = 0.0

    needs = ("ids", "targets")
    metrics = ("loss",)
    reports = (DIVERGENCE, NEXT_TOKEN)

    def __init__(self, teacher: str, temperature: float = 1.0, weight: float = 0.0) -> None:
        self.path, self.temperature, self.weight = teacher, temperature, weight
        self.vocabulary: int | None = None
        self._loaded_teacher: Any = None
        self.teacher: Reference

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what is no decoder.

        Raises:
            UsageError: the model does not continue what it reads.
        """
        if not spec.writes or spec.reads_source:
            hint = "begin from a decoder; orrery distil writes a teacher's answers for any model"
            raise UsageError("the objective distillation needs a decoder, this model is none", hint)
        self.vocabulary = spec.vocabulary

    def reads(self) -> "Mapping[str, str]":
        """Return the teacher."""
        return {"teacher": self.path}

    def take(self, models: "Mapping[str, nn.Module]") -> None:
        """Take the teacher.

        Raises:
            UsageError: it is no decoder of the same vocabulary.
        """
        self._loaded_teacher = models["teacher"]
        spec = self._loaded_teacher.spec
        if not spec.writes or spec.reads_source or spec.vocabulary != self.vocabulary:
            message = f"the teacher {self.path} is no decoder with the student's {self.vocabulary:,} tokens"
            raise UsageError(message, "orrery distil writes a teacher's answers, which any student can learn from")

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Return the teacher, frozen."""
        from orrery.objectives._reference import Reference

        self.teacher = Reference(self._loaded_teacher)
        return {"teacher": self.teacher}

    def check(self) -> None:
        """Look whether the teacher is what it was."""
        self.teacher.check()

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the targets that are not ignored."""
        from orrery.nn.cross_entropy import IGNORED

        tokens = int((batch["targets"] != IGNORED).sum())
        return {DIVERGENCE: tokens, NEXT_TOKEN: tokens}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed divergence from the teacher, and the summed cost of the targets."""
        from torch.nn import functional as F

        from orrery.models.model import LANGUAGE_MODEL
        from orrery.nn.cross_entropy import IGNORED

        learnt_BL = batch["targets"] != IGNORED

        def logits(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            found_NV: Tensor = head(x_BLD[learnt_BL])
            return found_NV if found_NV.dtype.itemsize > 4 else found_NV.float()

        wanted_NV = self.teacher(batch, {LANGUAGE_MODEL: logits})[LANGUAGE_MODEL] / self.temperature
        own_NV = model(batch, {LANGUAGE_MODEL: logits})[LANGUAGE_MODEL]
        found_NV = (own_NV / self.temperature).log_softmax(-1)
        away = F.kl_div(found_NV, wanted_NV.log_softmax(-1), reduction="sum", log_target=True)
        cost = F.cross_entropy(own_NV, batch["targets"][learnt_BL], reduction="sum")
        tokens = learnt_BL.sum()
        return {
            DIVERGENCE: Term(away, tokens, self.temperature**2),
            NEXT_TOKEN: Term(cost, tokens, self.weight),
        }
