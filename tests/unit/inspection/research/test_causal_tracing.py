"""Causal tracing against one run after another, with the noise drawn once more."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.research.causal_tracing import causal_tracing
from orrery.inspection.trace import trace
from tiny_models import smallest, tiny

IDS = torch.randint(0, 61, (6,), generator=torch.Generator().manual_seed(0))
SUBJECT, ANSWER, SAMPLES = [1, 2], 7, 3


def p(run) -> float:
    return float(run.logits[0, -1].softmax(-1)[ANSWER])


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize(("at", "window"), [("residual_post", 1), ("attention", 2), ("feed_forward", 1)])
def test_it_is_the_mean_of_single_runs(family: str, at: str, window: int) -> None:
    model = smallest(family)
    name = {"residual_post": "resid_post"}.get(at, f"{at}.added")
    clean = trace(model, IDS[None])
    blocks = sum(key.endswith(".resid_post") for key in clean)
    deviation = 2.0 * float(clean["embedded"].std())
    rng = torch.Generator().manual_seed(5)
    noise = deviation * torch.randn(SAMPLES, len(SUBJECT), model.spec.width, generator=rng, dtype=torch.float64)

    def run(sample: int, block: int | None, place: int) -> float:
        def hide(value, key):
            value = value.clone()
            value[0, SUBJECT] += noise[sample]
            return value

        def restore(value, key):
            value = value.clone()
            value[0, place] = clean[key][0, place]
            return value

        near = [] if block is None else range(block, min(block + window, blocks)) if window == 2 else [block]
        return p(trace(model, IDS[None], edit={"embedded": hide, **{f"blocks.{n}.{name}": restore for n in near}}))

    told: list[tuple[int, int]] = []
    causal = causal_tracing(
        model, IDS, SUBJECT, ANSWER, at=at, window=window, noise=2.0, samples=SAMPLES, seed=5, rows=10,
        done=lambda *count: told.append(count),
    )  # fmt: skip
    assert causal.noise == pytest.approx(deviation, rel=1e-12)
    assert causal.clean == pytest.approx(p(clean), abs=1e-12)
    corrupted = sum(run(sample, None, 0) for sample in range(SAMPLES)) / SAMPLES
    assert causal.corrupted == pytest.approx(corrupted, abs=1e-12)
    assert causal.restored_NL.shape == (blocks, 6)
    for block in range(blocks):
        for place in range(6):
            expected = sum(run(sample, block, place) for sample in range(SAMPLES)) / SAMPLES
            assert float(causal.restored_NL[block, place]) == pytest.approx(expected, abs=1e-12), (block, place)
    assert causal.total == causal.clean - causal.corrupted
    assert torch.equal(causal.indirect, causal.restored_NL - causal.corrupted)
    assert told[-1] == (1 + 6 * blocks, 1 + 6 * blocks)


def test_the_last_state_of_the_stream_is_the_whole_answer() -> None:
    causal = causal_tracing(tiny("gpt2"), IDS, SUBJECT, ANSWER)
    assert float(causal.restored_NL[-1, -1]) == pytest.approx(causal.clean, abs=1e-12)
    assert abs(causal.total) > 1e-6
    assert torch.allclose(causal.restored_NL[-1, :-1], torch.tensor(causal.corrupted, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"at": "heads"}, "no state of one position"),
        ({"subject": [6]}, r"stands at \[6\]"),
        ({"subject": []}, r"stands at \[\]"),
        ({"samples": 0}, "not possible"),
        ({"window": 0}, "not possible"),
        ({"answer": 9999}, "no token"),
        ({"position": 6}, "position 6"),
    ],
)
def test_what_cannot_be_traced_is_refused(change, why: str) -> None:
    given = {"ids_L": IDS, "subject": SUBJECT, "answer": ANSWER, **change}
    with pytest.raises(UsageError, match=why):
        causal_tracing(tiny("gpt2"), **given)
