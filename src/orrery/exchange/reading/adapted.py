"""A base with an adapter of peft on it: with as many tokens, and a head of its own, where the adapter says so."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from orrery.errors import ModelFileError
from orrery.exchange.reading.architecture import published
from orrery.exchange.reading.stored import Stored
from orrery.exchange.reading.weights import fill, weights_of
from orrery.models.meta_device import build_on_meta
from orrery.text import load_tokenizer
from orrery.text.chat.folder import read_templates
from orrery.text.published.vocabularies import file_in
from orrery.tuning.peft import load_adapter, tables_in
from orrery.tuning.peft.places import CONFIG

_SIZE, _TIED = "vocab_size", "tie_word_embeddings"


def with_adapter(stored: Stored, folder: str | Path, say: Callable[[str], None] = lambda line: None) -> Stored:
    """Return a base with the adapter in a folder on it, which reads texts as the adapter was trained on them.

    Args:
        stored: the base; its model gets the adapter in place unless its tables become others.
        folder: of peft's. A tokenizer and chat templates in it take the place of the base's.
        say: told what is not the base's.

    Raises:
        ModelFileError, UsageError: as ``load_adapter``; or the adapter brings tables that the base cannot take.
    """
    folder = Path(folder)
    fitted = _fitted(stored, tables_in(stored, folder), folder / CONFIG, say)
    load_adapter(fitted, folder)
    own = load_tokenizer(folder) if file_in(folder) is not None else None
    templates = read_templates(folder)
    taken = [name for name, there in (("tokenizer", own is not None), ("chat template", bool(templates))) if there]
    if taken:
        say(f"{folder}: its own {' and '.join(taken)}")
    return replace(fitted, tokenizer=own or fitted.tokenizer, chat=templates or fitted.chat)


def _fitted(stored: Stored, tables: Mapping[str, Tensor], path: Path, say: Callable[[str], None]) -> Stored:
    """Return a base whose tables of tokens have the rows of an adapter's, and are two where those differ."""
    old, own = stored.model.spec.vocabulary, dict(stored.model.named_parameters(remove_duplicate=False))
    rows = max(map(len, tables.values()), default=old)
    apart = any(_differ(name, other, tables, own) for name in tables for other in own if own[other] is own[name])
    if old is None or rows is None or (rows == old and not apart):
        return stored
    if stored.model.transforms or stored.config is None:
        hint = "load the base as its makers publish it, in floats"
        raise ModelFileError(f"{path}: the adapter saves {min(tables)} whole, which this base has no place for", hint)
    config = {**stored.config, _SIZE: rows, **({_TIED: False} if apart else {})}
    model = build_on_meta(published(config, path))
    # Copies, for two tables must not be the memory of the one that they were.
    changed = {name: tensor.to(own[name], copy=True) for name, tensor in tables.items()}
    tensors = {name: changed.get(name, own[name].detach()) for name in weights_of(model)}
    if wrong := [name for name, parameter in weights_of(model).items() if parameter.shape != tensors[name].shape]:
        message = f"{path}: the adapter is for a base with {rows:,} tokens, and its files lack {wrong[0]} of this size"
        raise ModelFileError(message, "merge the adapter with peft and load the whole")
    fill(model, tensors)
    if rows != old:
        say(f"{path.parent}: the tables have {rows:,} rows, those of the base {old:,}")
    return replace(stored, model=model.eval(), config=config)


def _differ(name: str, other: str, tables: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> bool:
    """Say whether an adapter has other numbers for two names of one table; what it does not save is the base's."""
    one, two = tables[name], tables.get(other, own[other].detach())
    return one.shape != two.shape or not torch.equal(one, two.to(one))
