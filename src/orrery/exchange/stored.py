"""What every task asks of a stored model, or is refused by name: tokenizer, device, end tokens, vocabularies."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from orrery.errors import ModelFileError, RunError, UsageError
from orrery.exchange.reading.generation_settings import Wishes, old_keys, wishes_of
from orrery.exchange.reading.read import Stored
from orrery.families import ends_of_texts
from orrery.generation.compiled_step import stepping
from orrery.text import Tokenizer


def tokenizer_of(stored: Stored) -> Tokenizer:
    """Return the tokenizer.

    Raises:
        ModelFileError: the model came without one.
    """
    if stored.tokenizer is None:
        raise ModelFileError(
            f"{stored.folder} has no tokenizer",
            "put the one that it was trained with there: a tokenizer.json, or a vocab.json with merges.txt, a "
            "vocab.txt or a SentencePiece model",
        )
    return stored.tokenizer


def device_of(stored: Stored) -> torch.device:
    """Return where the model runs."""
    return next(stored.model.parameters()).device


def ends_of(stored: Stored) -> frozenset[int]:
    """Return the ids that end a text: generation_config.json's, else config.json's, else the tokenizer's.

    Of a model of two parts, each with a configuration, it is the decoder's that may say so; a few families end at a
    token of their own.
    """
    config = stored.config or {}
    if own := ends_of_texts(stored.family, config):
        return frozenset(own)
    decoder = config.get("decoder")
    for source in (stored.generation, config, decoder if isinstance(decoder, Mapping) else {}):
        if (ids := source.get("eos_token_id")) is not None:
            return frozenset(ids if isinstance(ids, list) else [ids])
    id = control_token(stored, "end")
    return frozenset() if id is None else frozenset([id])


def control_token(stored: Stored, role: str) -> int | None:
    """Return the id of a control token, or nothing where the tokenizer has none."""
    try:
        return tokenizer_of(stored).special(role)
    except UsageError:
        return None


def wishes(stored: Stored) -> Wishes:
    """Return what the model's files say of writing."""
    return wishes_of(stored.generation, stored.config or {})


def with_key(stored: Stored, key: str, value: Any) -> Stored:
    """Return the model with one key of its generation_config.json, or of an old config.json, replaced."""
    return replace(stored, generation={**(stored.generation or old_keys(stored.config or {})), key: value})


def reads_apart(stored: Stored) -> bool:
    """Say whether an answer has a row of its own, beside the source that was read."""
    return stored.model.spec.reads_source


def writer(stored: Stored) -> Any:
    """Return what writes: the model, or the model with a compiled step.

    Raises:
        UsageError: it does not write, or its step cannot be compiled as asked.
    """
    check_writes(stored)
    check_one_vocabulary(stored)
    return stepping(stored.model, stored.kernel)


def check_writes(stored: Stored) -> None:
    """Refuse a model that writes nothing.

    Raises:
        UsageError: it is an encoder.
    """
    if not stored.model.spec.writes:
        raise UsageError("an encoder reads whole rows and writes nothing", "load a decoder or an encoder-decoder")


def vocabulary(stored: Stored) -> int:
    """Return the number of tokens that the model reads.

    Raises:
        UsageError: it reads images.
    """
    size = stored.model.spec.vocabulary
    if size is None:
        raise UsageError("this model reads images, not tokens", "give it an image: a PNG file, or an array")
    return size


def target_vocabulary(stored: Stored) -> int:
    """Return the number of tokens that an encoder-decoder writes; its source may have another vocabulary."""
    size = stored.model.spec.target_vocabulary
    assert size is not None
    return size


def check_one_vocabulary(stored: Stored) -> None:
    """Refuse to spell targets by the tokenizer of the sources.

    Raises:
        UsageError: the two sides have vocabularies of their own.
    """
    read, writes = stored.model.spec.vocabulary, stored.model.spec.target_vocabulary
    if read is not None and writes is not None and read != writes:
        raise UsageError(
            f"this model reads {read:,} tokens and writes {writes:,} others, and there is one tokenizer",
            "encode both sides yourself, and give the ids to logits or to the model",
        )


def refuse_no_number(stored: Stored, measured: float) -> None:
    """Refuse a measure that is no number; see ``LanguageModel.refuse_no_number``."""
    if math.isfinite(measured):
        return
    for name, weight in stored.model.named_parameters():
        if not torch.isfinite(weight).all():
            message = f"{stored.folder}: {name} has numbers that are none (NaN or infinite)"
            raise ModelFileError(message, "get the file again from its source, or take an earlier checkpoint")
    message = f"the model gives {measured} though each of its weights is finite"
    raise RunError(message, '16-bit numbers overflow: try `dtype="float32"`')
