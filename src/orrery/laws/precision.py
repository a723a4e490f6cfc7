"""Every family learns and writes at every precision that a recipe or a load offers."""

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import get_args

import torch

from orrery.laws.evidence import FLOAT32, Evidence, deviation, within
from orrery.laws.models import image_size, of_images, random_ids, tiny
from orrery.laws.place import placed
from orrery.laws.runs import losses, scratch, train

STEPS = 3
# A number keeps 8 bits in bfloat16 and 11 in float16. Over all families the largest differences were, of a loss
# 0.004; of logits 0.028 in bfloat16 and 0.006 in float16, where a token of a mixture went to another expert.
LOSSES = 0.02
DTYPES = {torch.float32: FLOAT32, torch.bfloat16: 0.1, torch.float16: 0.03}


def check(family: str) -> Iterator[Evidence]:
    """Train three steps at each precision, and write at each dtype; float32 is what the others are compared with."""
    evidence = partial(within, law="precision", family=family)
    for precision in offered():
        name = f"{STEPS} training steps at {precision}: losses beside float32's"
        yield evidence(name, value=learned(family, precision), bound=LOSSES)
    for dtype, bound in DTYPES.items():
        name = f"tokens written at {str(dtype).removeprefix('torch.')}: logits beside float32's"
        yield evidence(name, value=written(family, dtype), bound=bound)


def offered() -> list[str]:
    """Return the precisions that a recipe can name."""
    from orrery.recipes.config import TrainingSettings

    return [name for name in get_args(TrainingSettings.model_fields["precision"].annotation) if name != "auto"]


def learned(family: str, precision: str) -> float:
    """Return the largest relative difference of a step's loss from float32's."""
    losses_in_precision, expected = run(family, precision), run(family, "float32")
    return max(abs(a / b - 1) for a, b in zip(losses_in_precision, expected, strict=True))


@lru_cache(maxsize=4)
def run(family: str, precision: str) -> list[float]:
    """Return the losses of a short run."""
    with scratch() as folder:
        train(family, folder / "run", steps=STEPS, precision=precision)
        run_losses = losses(folder / "run")
    assert len(run_losses) == STEPS
    return run_losses


@torch.no_grad()
def written(family: str, dtype: torch.dtype) -> float:
    """Return how far logits are from float32's: of a padded batch, and of each step with a cache."""
    model, single = tiny(family, dtype), tiny(family, torch.float32)
    if (size := image_size(family)) is not None:
        images = placed(torch.rand(2, *size, generator=torch.Generator().manual_seed(1)))
        return deviation(of_images(model, images.to(dtype)).float(), of_images(single, images))
    ids = random_ids(2, 9)
    real = placed(torch.arange(9) >= torch.tensor([[0], [4]]))
    worst = deviation(model.logits(ids, real=real)[real].float(), single.logits(ids, real=real)[real])
    if not hasattr(model, "start"):
        return worst
    logits, session = model.start(ids[:, :4], 12)
    answered = [logits]
    for t in range(4, 9):
        answered.append(model.step(ids[:, t : t + 1], session)[:, -1])
    return max(worst, deviation(torch.stack(answered, 1).float(), single.logits(ids)[:, 3:]))
