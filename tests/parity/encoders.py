"""Parity of encoders: every head, with padding, token types and explicit positions, gradients and the round trip."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tests.parity.helper import (
    Pair,
    answer_of,
    assert_close,
    check_gradients,
    check_round_trip,
    pair,
    random_ids,
    takes_positions,
)


def assert_encoder_parity(
    kind: str,
    bound: float,
    *,
    auto: str = "AutoModelForMaskedLM",
    dtype: torch.dtype = torch.float64,
    wide: bool = True,
    **config: Any,
) -> Pair:
    """Check a masked language model, or another head made by ``auto``, against the reference."""
    both = pair(kind, dtype=dtype, wide=wide, auto=auto, **config)
    if not both.ours.heads:  # a bare model's answer is its stream
        both.ours.logits = both.ours.hidden
    ids = random_ids(3, 14)
    with torch.no_grad():
        check_others(both, ids, bound)
        for name, kernel in both.kernels.items():
            assert_close(f"forward ({name})", both, ids, both.ours.logits(ids, kernel=kernel), logits(both, ids), bound)
        check_padding(both, ids, bound)
        if takes_positions(both):
            check_positions(both, ids, bound)
        if config.get("type_vocab_size", 0) > 1:
            token_types = (torch.arange(14) > 6).long().expand(3, 14)
            expected = logits(both, ids, token_type_ids=token_types)
            assert_close("token_types", both, ids, both.ours.logits(ids, token_types=token_types), expected, bound)
    check_gradients(both, ids, bound)
    check_round_trip(both)
    return both


def check_others(both: Pair, ids: Tensor, bound: float) -> None:
    """Compare the final stream and the heads beside the main one, where the reference gives them."""
    theirs = both.reference(ids)
    if "last_hidden_state" in theirs:
        assert_close("final stream", both, ids, both.ours.hidden(ids), theirs.last_hidden_state, bound)
    for name in ("seq_relationship_logits", "sop_logits"):
        if name in theirs:
            assert_close(name, both, ids, both.ours.logits(ids, head="next"), theirs[name], bound)


def logits(both: Pair, ids: Tensor, **call: Any) -> Tensor:
    """Return the reference's answer, whatever its head calls it."""
    return answer_of(both.reference(ids, **call))


def check_padding(both: Pair, ids: Tensor, bound: float) -> None:
    """Pad on the right, and on the left where the reference can be told the positions."""
    for side, flip in (("right", False), ("left", True)):
        if flip and not (takes_positions(both) and both.wide):
            continue
        real = torch.arange(14) < torch.tensor([[14], [9], [3]])
        real = real.flip(1) if flip else real
        extra: Mapping[str, Tensor] = {"position_ids": positions_of(both, real)} if takes_positions(both) else {}
        expected = logits(both, ids, attention_mask=real.long(), **extra)
        for name, kernel in both.kernels.items():
            answer = both.ours.logits(ids, real=real, kernel=kernel)
            where = real if answer.dim() == 3 and answer.shape[1] == real.shape[1] else None
            if where is None and flip:
                continue  # the reference pools the first place, whatever stands there
            assert_close(f"{side} padding ({name})", both, ids, answer, expected, bound, where)


def positions_of(both: Pair, real: Tensor) -> Tensor:
    """Return the positions as the reference numbers them: RoBERTa and its kin begin after the padding id."""
    return (real.long().cumsum(1) - 1).clamp(min=0) + first_position(both)


def first_position(both: Pair) -> int:
    """Return the number of the first position."""
    if both.kind == "mpnet":
        return 2
    behind = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert")
    return both.config["pad_token_id"] + 1 if both.kind in behind else 0


def check_positions(both: Pair, ids: Tensor, bound: float) -> None:
    """Name the positions."""
    positions = torch.arange(14)[None] + torch.tensor([[0], [5], [11]])
    expected = logits(both, ids, position_ids=positions + first_position(both))
    assert_close("explicit positions", both, ids, both.ours.logits(ids, positions=positions), expected, bound)
