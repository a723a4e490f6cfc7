"""Span corruption: what is lost, that nothing is lost for good, and the loss beside transformers'."""

import math
from itertools import pairwise

import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from objectives_toy import bound, generator, split_deviation, text_rows, tiny, tokenizer_of
from orrery.checkpoints.rules import to_theirs
from orrery.errors import UsageError
from orrery.families import load_family, rules_of
from orrery.objectives.span_corruption import compositions, lost_tokens, sentinels
from orrery.training.contract import finished_batch

T5 = tokenizer_of("t5")
START = {"decoder_start_token_id": T5.special("end")}
MARKS = sentinels(T5)


def model(family="t5"):
    return tiny(family, T5, **START)


def restored(source: list[int], target: list[int]) -> list[int]:
    """Put the spans of a target into the places of their sentinels."""
    assert source[-1] == target[-1] == T5.special("end")
    spans: dict[int, list[int]] = {}
    for id in target[:-1]:
        if id in MARKS:
            assert id not in spans
            spans[id] = []
        else:
            spans[next(reversed(spans))].append(id)
    assert list(spans) == MARKS[: len(spans)]
    assert all(spans.values())
    assert [id for id in source if id in MARKS] == list(spans)
    assert not any(a in MARKS and b in MARKS for a, b in pairwise(source))  # what is kept lies between any two
    return [whole for id in source[:-1] for whole in spans.get(id, [id])]


def rows_of(batch):
    real, known = batch["source_real"], batch["targets"] != -100
    return [
        (source[here].tolist(), target[there].tolist())
        for source, here, target, there in zip(batch["source"], real, batch["targets"], known, strict=True)
    ]


@pytest.mark.parametrize(
    "settings", [{}, {"probability": 0.5, "mean_span": 10.0}, {"probability": 0.3, "mean_span": 1.0}]
)
def test_source_and_targets_give_back_the_text(settings):
    objective = bound("span_corruption", model(), T5, **settings)
    ids = text_rows(T5, 30, 64)
    real = torch.arange(64) < torch.tensor([64, 2, 3, 1, 7, 33] * 5)[:, None]
    prepared = objective.prepare({"ids": ids, "real": real}, generator())
    for row, here, (source, target) in zip(ids, real, rows_of(prepared), strict=True):
        if here.sum() > 1:
            assert restored(source, target) == row[here].tolist()
        else:
            assert (source, target) == ([*row[here].tolist(), T5.special("end")], [T5.special("end")])
    begun = torch.cat([torch.full((30, 1), T5.special("end")), prepared["targets"][:, :-1]], 1)
    known = begun != -100
    assert torch.equal(prepared["ids"][known], begun[known])
    assert set(prepared) == {"source", "source_real", "ids", "targets"}


def test_fifteen_of_a_hundred_in_spans_of_three():
    rng, length, rows = generator(), 1000, 1000
    lost = lost_tokens(torch.full((rows,), length), length, 0.15, 3.0, rng)
    assert lost.sum(1).unique().tolist() == [150]
    first = lost & ~torch.cat([torch.zeros(rows, 1, dtype=torch.bool), lost[:, :-1]], 1)
    assert first.sum(1).unique().tolist() == [50]
    assert not lost[:, 0].any()
    assert lost[:, -1].all()
    # A span of a composition of 150 into 50 parts has the length k in C(150 - k - 1, 48) of C(149, 49) ways.
    starts = [row.nonzero()[:, 0] for row in first]
    lengths = torch.cat([torch.cat([s[1:], torch.tensor([length])]) - s for s in starts])
    assert len(lengths) == 50 * rows
    gaps = compositions(torch.full((rows,), 150), torch.full((rows,), 50), 50, rng).flatten()
    for size in range(1, 7):
        share = math.comb(149 - size, 48) / math.comb(149, 49)
        error = math.sqrt(share * (1 - share) / len(gaps))
        assert abs(float((gaps == size).double().mean()) - share) < 5 * error
    # Between the ends every place is as likely: the mean over rows is the share that is lost.
    middle = lost[:, 100:900].double().mean()
    assert abs(float(middle) - 0.15) < 5 * math.sqrt(0.15 * 0.85 * 3 / (800 * rows))


def test_a_composition_is_drawn_evenly():
    rng, counts = generator(), {}
    for row in compositions(torch.full((6000,), 5), torch.full((6000,), 3), 4, rng).tolist():
        assert row[3] == 0
        key = tuple(row)
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 6
    assert max(abs(number - 1000) for number in counts.values()) < 5 * math.sqrt(6000 * 5 / 36)


@pytest.mark.parametrize("family", ["t5", "bart", "transformer"])
def test_micro_batches_and_padding_change_nothing(family):
    learner = model(family)
    objective = bound("span_corruption", learner, T5)
    ids = text_rows(T5, 4, 24)
    real = torch.arange(24) < torch.tensor([[24], [5], [13], [2]])
    batch = finished_batch(objective, {"ids": ids, "real": real}, generator(4), learner.spec.inputs)
    assert split_deviation(learner, objective, batch) < 1e-12
    wider = {name: torch.nn.functional.pad(batch[name], (0, 3), value=0) for name in ("source", "source_real", "ids")}
    wider["targets"] = torch.nn.functional.pad(batch["targets"], (0, 3), value=-100)
    losses = [objective.loss(learner.eval(), each)["next_token"].sum for each in (batch, wider)]
    assert abs((losses[0] - losses[1]).item()) < 1e-9


def test_the_loss_is_that_of_transformers():
    rules, learner = load_family("t5"), model().eval()
    config = {**rules.TINY, "vocab_size": T5.size, **START}
    theirs = T5ForConditionalGeneration(T5Config(**config)).double().eval()
    weights = to_theirs({name: p.detach() for name, p in learner.named_parameters()}, rules_of(rules, config))
    assert not theirs.load_state_dict(weights, strict=False).unexpected_keys
    objective = bound("span_corruption", learner, T5)
    batch = objective.prepare({"ids": text_rows(T5, 3, 30)}, generator(2))
    told = theirs(input_ids=batch["source"], attention_mask=batch["source_real"].long(), labels=batch["targets"])
    term = objective.loss(learner, batch)["next_token"]
    assert abs((term.sum / term.count - told.loss).item()) < 1e-7
    assert objective.counts(batch) == {"next_token": int(term.count)}


def test_drawn_anew_at_each_step_and_alike_from_the_same_generator():
    objective = bound("span_corruption", model(), T5)
    batch = {"ids": text_rows(T5, 8, 32)}
    first, again, other = (objective.evaluated().prepare(batch, generator(seed)) for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["source"], other["source"])


def test_what_cannot_learn_this_is_refused():
    with pytest.raises(UsageError, match="the objective span_corruption needs an encoder-decoder"):
        bound("span_corruption", tiny("gpt2", T5), T5)
    plain = tokenizer_of(None)
    learner = tiny("t5", plain, decoder_start_token_id=plain.special("end"))
    with pytest.raises(UsageError, match="needs the sentinels <extra_id_0>") as error:
        bound("span_corruption", learner, plain)
    assert "tokenizer.frame: t5" in error.value.hint
    with pytest.raises(UsageError, match="a row of 400 tokens loses 200 spans, and the tokenizer has 100 sentinels"):
        bound("span_corruption", model(), T5, probability=0.5, mean_span=1.0).prepare(
            {"ids": text_rows(T5, 1, 400)}, generator()
        )
