"""A model that exists with room for more tokens: those that a chat format needs and its tokenizer lacked."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.reading.weights import weights_of
from orrery.text.tokenizer import Tokenizer
from orrery.training.begin import Base, grown

SIZE = "vocab_size"
"""What every family's configuration calls the number of its tokens."""


def outgrown(base: Base | None, tokenizer: Tokenizer | None) -> bool:
    """Say whether the tokenizer is the base's own with more tokens than its model has rows for."""
    if base is None or tokenizer is None or base.stored.tokenizer is None:
        return False
    old = base.stored.tokenizer
    if not old.size < tokenizer.size > (base.stored.model.spec.vocabulary or tokenizer.size):
        return False
    return all(old.token(id) == tokenizer.token(id) for id in range(old.size))


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


def take_rows(own: Tensor, there: Tensor) -> None:
    """Copy the rows that exist; a new one is their mean (Hewitt 2021), and beside it what was drawn for it."""
    rows = there.shape[0]
    own[:rows].copy_(there)
    own[rows:].add_(there.to(torch.promote_types(there.dtype, torch.float32)).mean(0).to(own))


def refuse_frozen(model: nn.Module, base: Base) -> None:
    """Refuse new rows that nothing would teach.

    Raises:
        UsageError: a tensor has some, and is frozen.
    """
    there, own = weights_of(base.stored.model), weights_of(model)
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    found = [name for name in own if name in there and grown(own[name], there[name]) and name not in learning]
    if found:
        message = f"{base.stored.folder}: new control tokens have rows in {', '.join(found)}, which the recipe freezes"
        raise UsageError(message, f"let them learn: model.adapter.learn: [{', '.join(found)}], or model.freeze without")


def growth_note(base: Base, tokenizer: Tokenizer) -> Sequence[str]:
    """Say which tokens are new."""
    old: Any = base.stored.tokenizer
    added = ", ".join(tokenizer.token(id) for id in range(old.size, tokenizer.size))
    return [f"the tokenizer of {base.stored.folder} lacked {added}: its model has {tokenizer.size:,} tokens now"]
