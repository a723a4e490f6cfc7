"""Parity of encoder-decoders: sources padded on either side, cached decoding, greedy tokens, gradients, round trip."""

from typing import Any

import torch
from torch import Tensor

from tests.parity.helper import Pair, assert_close, check_gradients, check_round_trip, pair, random_ids


def assert_seq2seq_parity(
    kind: str,
    bound: float,
    *,
    auto: str = "AutoModelForSeq2SeqLM",
    dtype: torch.dtype = torch.float64,
    wide: bool = True,
    **config: Any,
) -> Pair:
    """Check an encoder-decoder against the reference."""
    both = pair(kind, dtype=dtype, wide=wide, auto=auto, **config)
    source, target = random_ids(3, 11), random_ids(3, 8, seed=2)
    target[:, 0] = both.ours.spec.start
    with torch.no_grad():
        expected = both.reference(source, decoder_input_ids=target).logits
        for name, kernel in both.kernels.items():
            logits = both.ours.logits(source, target, kernel=kernel)
            assert_close(f"forward ({name})", both, source, logits, expected, bound)
        check_padding(both, source, target, bound)
        check_left_padding(both, source, target, bound)
        check_cache(both, source, target, bound)
        check_greedy(both, source)
    check_gradients(both, source, bound, target)
    check_round_trip(both)
    return both


def check_padding(both: Pair, source: Tensor, target: Tensor, bound: float) -> None:
    """Pad the sources and the targets on the right."""
    real = torch.arange(11) < torch.tensor([[11], [7], [2]])
    written = torch.arange(8) < torch.tensor([[8], [5], [3]])
    call = {"attention_mask": real.long(), "decoder_input_ids": target, "decoder_attention_mask": written.long()}
    expected = both.reference(source, **call).logits
    for name, kernel in both.kernels.items():
        logits = both.ours.logits(source, target, source_real=real, real=written, kernel=kernel)
        assert_close(f"right padding ({name})", both, source, logits, expected, bound, written)


def check_left_padding(both: Pair, source: Tensor, target: Tensor, bound: float) -> None:
    """Pad the sources on the left; the reference reads every row alone, as most families would number the padding."""
    lengths = (11, 7, 2)
    real = torch.arange(11) >= 11 - torch.tensor(lengths)[:, None]
    rows = zip(source, lengths, target, strict=True)
    alone = [both.reference(row[None, -n:], decoder_input_ids=t[None]).logits for row, n, t in rows]
    for name, kernel in both.kernels.items():
        logits = both.ours.logits(source, target, source_real=real, kernel=kernel)
        assert_close(f"left padding ({name})", both, source, logits, torch.cat(alone), bound)


def check_cache(both: Pair, source: Tensor, target: Tensor, bound: float) -> None:
    """Take one target token after the other, with sources of unequal lengths."""
    lengths = torch.tensor([11, 7, 2])
    real = torch.arange(11) < lengths[:, None]
    expected = both.reference(source, attention_mask=real.long(), decoder_input_ids=target).logits
    logits, session = both.ours.start(source, capacity=8, lengths=lengths)
    steps = [logits]
    for t in range(1, 8):
        logits = both.ours.step(target[:, t : t + 1], session)
        steps.append(logits[:, 0])
    assert_close("cache, step by step", both, source, torch.stack(steps, 1), expected, bound)


def check_greedy(both: Pair, source: Tensor) -> None:
    """Write sixteen tokens, the reference without a cache, ours with one."""
    theirs = ours = torch.full_like(source[:, :1], both.ours.spec.start)
    logits, session = both.ours.start(source, capacity=17)
    for _ in range(16):
        answer = both.reference(source, decoder_input_ids=theirs).logits[:, -1]
        theirs = torch.cat([theirs, answer.argmax(-1, keepdim=True)], 1)
        token = logits.argmax(-1, keepdim=True)
        ours = torch.cat([ours, token], 1)
        stepped = both.ours.step(token, session)
        logits = stepped[:, -1]
    assert torch.equal(ours, theirs), f"{both.kind}: greedy tokens differ"
