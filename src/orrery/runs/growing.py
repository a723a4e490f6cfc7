"""A model that exists and more tokens than it was trained with: those that a chat format needs and it lacked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.exchange.reading.weights import weights_of
from orrery.models.meta_device import build_on_meta
from orrery.models.model import ModelSpec
from orrery.nn.spec import from_json, to_json
from orrery.runs.begin import Base
from orrery.text.tokenizer import Tokenizer

SIZE = "vocab_size"
"""What every family's configuration calls the number of its tokens."""


@dataclass(frozen=True)
class NewRows:
    """The ids that a run's tokenizer has beyond the base's, and the tensors that have a row for each id.

    Nobody has taught these rows, whether the model grows by them or had them to spare.
    """

    ids: range
    names: frozenset[str]

    def take(self, own: Tensor, there: Tensor) -> None:
        """Copy the rows that exist; a new token's is their mean (Hewitt 2021), and beside it what was drawn for it."""
        drawn = own[self.ids.start : self.ids.stop].clone()
        own[: len(there)].copy_(there)
        known = there[: self.ids.start]
        mean = known.to(torch.promote_types(there.dtype, torch.float32)).mean(0)
        own[self.ids.start : self.ids.stop] = drawn + mean.to(own)


def lacking(base: Base | None, tokenizer: Tokenizer | None) -> range | None:
    """Return the ids that a tokenizer has beyond the base's own, where it is that with more tokens."""
    old = None if base is None else base.stored.tokenizer
    if old is None or tokenizer is None or not old.size < tokenizer.size:
        return None
    same = all(old.token(id) == tokenizer.token(id) for id in range(old.size))
    return range(old.size, tokenizer.size) if same else None


def new_rows(base: Base | None, tokenizer: Tokenizer | None) -> NewRows | None:
    """Return the rows of a run's model that its base was never taught, if there are any."""
    ids = lacking(base, tokenizer)
    if base is None or ids is None:
        return None
    return NewRows(ids, frozenset(vocabulary_tensors(base.stored.model.spec)))


def vocabulary_tensors(spec: ModelSpec) -> Iterable[str]:
    """Return the names of the tensors with a row for each token: those that have one more with one token more."""
    size = spec.vocabulary
    if size is None:
        return ()

    def longer(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: size + 1 if key == "vocabulary" and own == size else longer(own) for key, own in value.items()}
        return [longer(own) for own in value] if isinstance(value, list | tuple) else value

    more: Any = from_json(longer(to_json(spec)))
    before, after = (weights_of(build_on_meta(each)) for each in (spec, more))
    return [name for name in before if after[name].shape != before[name].shape]


def outgrown(base: Base | None, tokenizer: Tokenizer | None) -> bool:
    """Say whether the tokenizer is the base's own with more tokens than its model has rows for."""
    ids = lacking(base, tokenizer)
    if base is None or ids is None:
        return False
    return ids.stop > (base.stored.model.spec.vocabulary or ids.stop)


def with_room(base: Base, config: Mapping[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the configuration of the base with as many tokens as the tokenizer has.

    Raises:
        UsageError: the base is of no family, so that no configuration says what it is.
    """
    old: Any = base.stored.tokenizer
    if base.stored.family is None or base.stored.config is None:
        lacks = ", ".join(tokenizer.token(id) for id in range(old.size, tokenizer.size))
        message = f"{base.stored.folder}: its tokenizer lacks {lacks}, and a model of its own architecture cannot grow"
        raise UsageError(message, "train it with tokenizer.chat, or name with data.template a format that it knows")
    return {**config, SIZE: tokenizer.size}


def refuse_frozen(model: nn.Module, base: Base, rows: NewRows) -> None:
    """Refuse new rows that nothing would teach.

    Raises:
        UsageError: a tensor has some, and is frozen.
    """
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    frozen = [name for name in weights_of(model) if name in rows.names and name not in learning]
    if frozen:
        message = f"{base.stored.folder}: new control tokens have rows in {', '.join(frozen)}, which the recipe freezes"
        raise UsageError(
            message, f"let them learn: model.adapter.learn: [{', '.join(frozen)}], or model.freeze without"
        )


def growth_note(base: Base, tokenizer: Tokenizer) -> Sequence[str]:
    """Say which tokens are new, and where their rows are."""
    old: Any = base.stored.tokenizer
    added = ", ".join(tokenizer.token(id) for id in range(old.size, tokenizer.size))
    where = f"its model has {tokenizer.size:,} tokens now"
    if not outgrown(base, tokenizer):
        where = f"they begin in rows {old.size:,} to {tokenizer.size - 1:,}, which its model had to spare"
    return [f"the tokenizer of {base.stored.folder} lacked {added}: {where}"]
