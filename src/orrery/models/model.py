"""What all assemblies are: a batch of named tensors in, what each asked head makes of it out."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.inputs import HOW, Batch, Inputs
from orrery.models.shown import shown
from orrery.nn.attention.kernels import Kernel
from orrery.nn.context import DEFAULT_EXECUTION, Execution
from orrery.nn.heads import LanguageModelHead
from orrery.nn.inputs import Tokens
from orrery.nn.masks import Need
from orrery.nn.spec import ModuleSpec, spec
from orrery.nn.stack import Stack

LANGUAGE_MODEL = "language_model"
"""The name of the head that scores every next token: the main one of whatever writes."""

HIDDEN = "hidden"
"""The final stream itself, which may be asked for like a head."""

Stream: TypeAlias = Float[Tensor, "B ... D"] | tuple[Tensor, Tensor]
"""What heads read: the final stream, that of a picture with rows and columns for L; of a dual encoder both vectors."""

Answer: TypeAlias = Callable[[nn.Module, Any, Bool[Tensor, "B L"] | None], Any]
"""What is done with a head inside the call: it gets the head, the final stream and which tokens are real."""

Heads: TypeAlias = Sequence[str] | Mapping[str, Answer]


def apply(head: nn.Module, x_BLD: Stream, real_BL: Bool[Tensor, "B L"] | None) -> Any:
    """Return what a head makes of the final stream: what is asked where only its name is given."""
    return head(x_BLD, real_BL)


class FinalStream(nn.Module):
    """The head that changes nothing.

    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the stream of a picture may have rows and columns instead of L.
    """

    def forward(self, x_BLD: Stream, real_BL: Bool[Tensor, "B L"] | None = None) -> Stream:
        """Return the stream as it is."""
        return x_BLD


_STREAM = FinalStream()


@spec
class ModelSpec(ModuleSpec):
    """The whole architecture of a model.

    ``context`` is the length it is meant for; ``heads`` are those beside the language model's, which has a field of its
    own where the model writes, so that its next tokens can be asked for step by step. ``padding`` is a token that no
    head counts as real, whoever wrote it: published classifiers find the end of a row by its id.
    """

    writes: ClassVar[bool] = False
    """Whether the model writes: it gives each next token, and can be stepped."""

    width: int
    context: int
    heads: Mapping[str, ModuleSpec] = field(default_factory=dict)
    padding: int | None = None

    @abstractmethod
    def build(self, width: int = 0) -> "Model":
        """Return the model, its weights as torch leaves them; the width is the spec's own."""

    @property
    @abstractmethod
    def inputs(self) -> Inputs:
        """What the model reads: the fields of a batch, in the order in which a call may give them."""

    @property
    @abstractmethod
    def answering(self) -> Stack.Spec:
        """The stack whose final stream the heads get."""

    @property
    def head_names(self) -> tuple[str, ...]:
        """The names of the heads, the main one first."""
        return (LANGUAGE_MODEL, *self.heads) if self.writes else tuple(self.heads)

    @property
    def reads_pair(self) -> bool:
        """Whether the model reads two things in a call: a source and a target, or a picture and a text."""
        return len(self.inputs) > 1

    @property
    def reads_source(self) -> bool:
        """Whether the model writes beside a source that it has read, rather than behind it."""
        return self.writes and self.reads_pair

    @property
    def compares(self) -> bool:
        """Whether the model compares the rows of two things, so that a score belongs to a pair of rows."""
        return self.reads_pair and not self.writes

    @property
    def first_token(self) -> int | None:
        """The token that every target begins with, where the model writes beside a source."""
        return None

    def counted(self, batch: Batch) -> Bool[Tensor, "B L"] | None:
        """Return which tokens heads count as real: those that the batch says, without the padding known by its id."""
        real_BL: Tensor | None = batch.get("real")
        if self.padding is None:
            return real_BL
        other_BL = batch[next(iter(self.inputs))] != self.padding
        return other_BL if real_BL is None else real_BL & other_BL

    @property
    def vocabulary(self) -> int | None:
        """How many tokens the model tells apart where it reads; nothing where it reads images."""
        first = next(iter(self.inputs.values()))
        return first.vocabulary if isinstance(first, Tokens) else None

    @property
    def token_types(self) -> int:
        """How many token types the model tells apart in a row."""
        return 1

    @property
    def target_vocabulary(self) -> int | None:
        """How many tokens the model tells apart in the second of two things: the target, or the text of a picture."""
        ids_input = self.inputs.get("ids") if self.reads_pair else None
        return ids_input.vocabulary if isinstance(ids_input, Tokens) else None


def build_heads(spec: ModelSpec) -> nn.ModuleDict:
    """Return the heads beside the language model's."""
    return nn.ModuleDict({name: head.build(spec.width) for name, head in spec.heads.items()})


def tie(table: nn.Embedding, head: LanguageModelHead) -> None:
    """Let a head use the embedding table itself.

    Raises:
        UsageError: their shapes differ.
    """
    if table.weight.shape != head.vocabulary.weight.shape:
        raise UsageError(
            f"a tied head needs a table of {tuple(head.vocabulary.weight.shape)}, "
            f"the embeddings have {tuple(table.weight.shape)}",
            "untie the head (concatenated positions leave narrower embeddings)",
        )
    head.vocabulary.weight = table.weight


class Model(nn.Module, ABC):
    """``heads(stream(batch))``: one call for every assembly.

    Shapes: ids ``[B, L]``, images ``[B, channels, rows, columns]`` or both to what each head gives, often
    ``[B, L, V]``.
    """

    role: str = ""
    spec: ModelSpec
    kernel: Kernel
    heads: nn.ModuleDict
    stack: Stack
    """The stack that answers."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Patterns of what tensors were called in files of earlier versions, and what stands in the place of a match."""
    scan: str | None = None
    """The form of mixers with a state; ``None`` is each mixer's own."""
    transforms: tuple[Any, ...] = ()
    """What was done to the finished model, in order: the ``Transform``s of the package ``tuning``."""
    how: ClassVar[frozenset[str]]
    """Which of the fields that say how to read this assembly can follow."""

    @property
    def first_token(self) -> int | None:
        """The token that every row begins with, where the model writes beside a source."""
        return self.spec.first_token

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its numbers: that of the first parameter that holds no whole numbers."""
        return next(parameter.dtype for parameter in self.parameters() if parameter.is_floating_point())

    def __repr__(self) -> str:
        """Return the tree of its parts, with their sizes and parameters."""
        first = next(self.parameters(), None)
        where = "" if first is None else f", {str(first.dtype).removeprefix('torch.')} on {first.device}"
        return shown(self, f"context {self.spec.context:,}{where}")

    @property
    def reads_at_once(self) -> bool:
        """Whether a prompt has to be read in one call: a source, or a prefix that sees all of itself."""
        return self.first_token is not None or Need.PREFIX in self.stack.needs

    @property
    def named_heads(self) -> dict[str, nn.Module]:
        """The heads by name, the main one first."""
        parts = dict(self.named_children())
        return {name: parts["head"] if name == LANGUAGE_MODEL else self.heads[name] for name in self.spec.head_names}

    @classmethod
    def current_name(cls, name: str) -> str:
        """Return what a tensor is called now that a file of any version calls so."""
        return next((re.sub(old, new, name) for old, new in cls.renamed.items() if re.search(old, name)), name)

    @abstractmethod
    def stream(self, batch: Batch, execution: Execution) -> Float[Tensor, "B L D"]:
        """Return the final stream of a batch."""

    def forward(
        self,
        batch: Batch,
        heads: Heads | None = None,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> dict[str, Any]:
        """Return what each asked head makes of a batch, by the head's name.

        Args:
            batch: named tensors; what the model reads is in ``spec.inputs``, and beside it ``real`` (which tokens are
                no padding; ``source_real`` of a source), ``positions``, ``documents`` and ``prefix`` of packed rows,
                ``token_types``. Other fields, such as an objective's targets, are left alone.
            heads: names of heads, or by name a function that is called inside with the head, the final stream and
                which tokens are real; ``hidden`` is the stream itself. By default the main head.
            execution: how the call is computed.

        Raises:
            UsageError: a head that the model lacks, or a batch without what it reads or with what it cannot follow.
        """
        answers_of_heads = self._asked(heads)
        self._check(batch)
        x_BLD = self.stream(batch, execution)
        known = {**self.named_heads, HIDDEN: _STREAM}
        real_BL = self.spec.counted(batch)
        answers = {name: answer(known[name], x_BLD, real_BL) for name, answer in answers_of_heads.items()}
        if execution.taps is None:
            return answers
        return {name: self._shown(execution, name, value) for name, value in answers.items()}

    def logits(self, *inputs: Tensor, head: str | None = None, **call: Any) -> Float[Tensor, "..."]:
        """Return the answer of one head, the main one by default.

        Args:
            inputs: what the model reads, in the order of ``spec.inputs``.
            head: its name.
            call: other fields of the batch, and those of ``Execution``.

        Raises:
            UsageError: as in a call of the model, or there are not as many inputs as the model reads.
        """
        heads = None if head is None else (head,)
        return next(iter(self._called(inputs, heads, call).values()))

    def hidden(self, *inputs: Tensor, **call: Any) -> Float[Tensor, "B ... D"]:
        """Return the final stream; arguments as in ``logits``."""
        stream: Tensor = self._called(inputs, (HIDDEN,), call)[HIDDEN]
        return stream

    def _called(self, inputs: Sequence[Tensor], heads: Heads | None, call: Mapping[str, Any]) -> dict[str, Any]:
        names = tuple(self.spec.inputs)
        if len(inputs) != len(names):
            message = f"{type(self).__name__} reads {' and '.join(names)}, and {len(inputs)} inputs were given"
            raise UsageError(message, "give one tensor for each")
        fields = {name: value for name, value in call.items() if name in HOW and value is not None}
        others = {name: value for name, value in call.items() if name not in HOW}
        return self({**dict(zip(names, inputs, strict=True)), **fields}, heads, Execution(**others))

    def _asked(self, heads: Heads | None) -> Mapping[str, Answer]:
        """Return the asked heads with what is done with each."""
        known = self.spec.head_names
        if heads is None:
            heads = known[:1]
            if not heads:
                raise UsageError("this model has no head at all", "hidden() gives its final stream")
        for name in heads:
            if name not in known and name != HIDDEN:
                has = ", ".join(known) or "none, and hidden() gives its final stream"
                raise UsageError(f"this model has no head {name}", f"it has: {has}")
        return heads if isinstance(heads, Mapping) else dict.fromkeys(heads, apply)

    def _check(self, batch: Any) -> None:
        """Refuse a batch that lacks what the model reads, or says how to read what it cannot follow."""
        name, reads = type(self).__name__, self.spec.inputs
        if not isinstance(batch, Mapping):
            message = f"{name} takes a batch, a mapping from names to tensors, and was given a {type(batch).__name__}"
            raise UsageError(message, f"model.logits({', '.join(reads)}) takes tensors")
        if missing := [read for read in reads if read not in batch]:
            message = f"{name} reads {' and '.join(reads)}, and the batch has {', '.join(batch) or 'nothing'}"
            raise UsageError(message, f"give the batch {' and '.join(missing)}")
        if beyond := [word for word in HOW if word in batch and word not in self.how]:
            raise UsageError(f"{name} cannot follow {', '.join(beyond)}", f"leave {' and '.join(beyond)} out")

    def _shown(self, execution: Execution, name: str, value: Any) -> Any:
        """Show what a head gave: ``logits`` of the main one, the others under their names."""
        main = self.spec.head_names[:1]
        if name == HIDDEN or not isinstance(value, Tensor):
            return value
        return execution.tap("logits" if name in main else name, value)
