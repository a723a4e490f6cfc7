"""Numbers out: the logits and the final hidden states of rows of ids, and the log probabilities of a text."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import (
    device_of,
    reads_apart,
    refuse_no_number,
    target_vocabulary,
    tokenizer_of,
    vocabulary,
)
from orrery.generation.generate import too_long
from orrery.generation.scoring import Score
from orrery.generation.scoring import score as score_ids
from orrery.language_model.arguments import Ids, one_each, rows_of, token_types_of
from orrery.language_model.texts import Text, before_text, opening_of, read, spell


def score(stored: Stored, text: Text) -> Score:
    """Return the log probability of each token of a text; see ``LanguageModel.score``."""
    context = stored.model.spec.context
    if not stored.model.spec.writes or reads_apart(stored):
        raise UsageError("only a decoder gives each token a probability from those before it", "load a decoder")
    row, before = read(stored, text, None, context), before_text(stored)
    ids = row[len(opening_of(tokenizer_of(stored))) :]
    if len(before) + len(ids) > context:
        raise too_long(len(before) + len(ids), context)
    score = score_ids(lambda rows: logits(stored, rows), ids, lambda id: spell(stored, id), before)
    refuse_no_number(stored, score.total)
    return score


def logits(
    stored: Stored,
    input_ids: Ids,
    attention_mask: Ids | None = None,
    decoder_input_ids: Ids | None = None,
    token_type_ids: Ids | None = None,
) -> Float[Tensor, "B L V"]:
    """Return the logits of every next token, or what the main head of an encoder says; see ``LanguageModel.logits``."""
    ids_BL, real_BL = inputs(stored, input_ids, attention_mask)
    token_types = _token_types(stored, token_type_ids, ids_BL)
    with torch.no_grad():
        if reads_apart(stored):
            return stored.model.logits(ids_BL, targets(stored, decoder_input_ids), source_real=real_BL)
        if decoder_input_ids is not None:
            raise UsageError("this model has no encoder and decoder", "give input_ids without decoder_input_ids")
        return stored.model.logits(ids_BL, real=real_BL, **token_types)


def hidden(
    stored: Stored, input_ids: Ids, attention_mask: Ids | None, token_type_ids: Ids | None
) -> Float[Tensor, "B L D"]:
    """Return the final hidden states, after the last norm; see ``LanguageModel.hidden``."""
    ids_BL, real_BL = inputs(stored, input_ids, attention_mask)
    token_types = _token_types(stored, token_type_ids, ids_BL)
    with torch.no_grad():
        if reads_apart(stored):
            reader: Any = stored.model
            return reader.read(ids_BL, real=real_BL).encoder_states_BSD
        return stored.model.hidden(ids_BL, real=real_BL, **token_types)


def inputs(stored: Stored, input_ids: Ids, attention_mask: Ids | None) -> tuple[Tensor, Tensor | None]:
    """Return ids and mask as checked tensors on the model's device."""
    device = device_of(stored)
    ids_BL = rows_of("input_ids", input_ids, vocabulary(stored), stored.model.spec.context)
    if attention_mask is None:
        return ids_BL.to(device), None
    mask_BL = one_each("attention_mask", attention_mask, ids_BL)
    return ids_BL.to(device), mask_BL.bool().to(device)


def targets(stored: Stored, decoder_input_ids: Ids | None) -> Tensor:
    """Return the checked targets of an encoder-decoder."""
    if decoder_input_ids is None:
        raise UsageError(
            "an encoder-decoder predicts targets, and there are none",
            f"give decoder_input_ids; every row begins with {stored.model.first_token}",
        )
    context = stored.model.spec.context
    targets_BL = rows_of("decoder_input_ids", decoder_input_ids, target_vocabulary(stored), context)
    return targets_BL.to(device_of(stored))


def _token_types(stored: Stored, token_type_ids: Ids | None, ids_BL: Tensor) -> dict[str, Any]:
    """Return the checked token types as an argument of the model, where there are any."""
    if token_type_ids is None:
        return {}
    embed = getattr(stored.model.spec, "embed", None)
    return {"token_types": token_types_of(token_type_ids, ids_BL, embed).to(device_of(stored))}
