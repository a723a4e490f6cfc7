"""Golden outputs: what the reference computes from formula weights, a few numbers a model, checked without it.

The reference computes in float64 throughout: the casts to float32 inside transformers are widened. How far the one that
is installed is from that stands in ``exactness.json``.

``tests/goldens/make.py`` wrote the files, with the versions that they name.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from orrery.checkpoints.rules import to_ours, to_theirs
from orrery.exchange.reading.weights import fill, weights_of
from orrery.families import load_family, rules_of
from orrery.laws import questions
from orrery.laws.accumulation import OneOf
from orrery.laws.evidence import FLOAT64, CannotRunError, Evidence, within
from orrery.laws.formula import numbers
from orrery.laws.place import device, placed
from orrery.models.dual_encoder import DualEncoder
from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives import Objective
from orrery.objectives.causal import CausalLanguageModel
from orrery.objectives.seq2seq import SequenceToSequence

Answers = list[list[Tensor]]
Found = Mapping[str, Any]


def check(family: str) -> Iterator[Evidence]:
    """Compare logits, loss and gradients of the family's golden models with the reference's.

    Raises:
        CannotRunError: nobody has made golden outputs of the family.
    """
    evidence = partial(within, law="outputs", family=family)
    for case in cases(family):
        for part, value in compared(answered(family, case), case["found"]).items():
            yield evidence(f"{case['name']}: {part} == {case['by']}", value=value, bound=FLOAT64)


def compared(answer: Found, expected: Found) -> dict[str, float]:
    """Return how far the parts of an answer are from what was found once."""
    parts = {"logits": ("sums", "last"), "loss": ("loss",), "gradients": ("norm", "slope")}
    return {part: max(apart(answer[key], expected[key]) for key in keys) for part, keys in parts.items()}


def cases(family: str) -> list[dict[str, Any]]:
    """Return the golden models of a family: name, who computed it, architecture, config, and what was found.

    Raises:
        CannotRunError: there are none.
    """
    file = files("orrery.laws") / "reference" / f"{family}.json"
    if not file.is_file():
        raise CannotRunError("no golden outputs", "a family from outside brings tests of its own")
    golden: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cases"]
    return golden


def apart(values: float | Sequence[float], expected: float | Sequence[float]) -> float:
    """Return ``max|a - b| / max(1, |b|)`` over one number or several."""
    pairs = zip(*([x] if isinstance(x, float) else x for x in (values, expected)), strict=True)
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs)


def answered(family: str, case: Found) -> dict[str, Any]:
    """Return what our model answers to the questions of a case."""
    config = {**case["config"], "architectures": [case["architecture"]]}
    rules = rules_of(load_family(family), config)
    return asked(built(family, config), lambda gradients: to_theirs(gradients, rules))


def asked(model: Any, named: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]) -> dict[str, Any]:
    """Return a model's answers; ``named`` gives its gradients the names of its file."""
    with torch.no_grad():
        summed = questions.summary(answers(model, "left"))
    loss = learned(model)
    trained = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in model.named_parameters()}
    return {**summed, "loss": loss, **questions.slope(named(trained))}


def built(family: str, config: Mapping[str, Any]) -> Any:
    """Return the model of a configuration, with formula weights under the names of the published file."""
    module = load_family(family)
    model: Any = module.spec(config).build(0)
    model = model.to(torch.float64).eval()
    rules, own = rules_of(module, config), weights_of(model)
    theirs = {  # a count, as of the batches that a norm has seen, stays one
        name: numbers(name, tensor.shape) if tensor.is_floating_point() else tensor
        for name, tensor in to_theirs(own, rules).items()
    }
    fill(model, to_ours(theirs, rules, {name: tensor.shape for name, tensor in own.items()}))
    return model.to(device())


def answers(model: Any, side: str) -> Answers:
    """Return what every head says to every row, from one padded batch."""
    if model.spec.reads_source:
        return written(model, side)
    if not model.spec.writes:
        return read(model, side)
    ids, real = padded(questions.texts(model.spec.vocabulary), side)
    return [[row[keep]] for row, keep in zip(model.logits(ids, real=real), real, strict=True)]


def written(model: Any, side: str) -> Answers:
    """Return the logits of every target."""
    target, real = padded(questions.texts(model.spec.target_vocabulary, questions.TARGETS), "right")
    if (images := model.spec.inputs.get("images")) is not None:
        logits = model.logits(placed(torch.stack(questions.images(images.shape))), target, real=real)
    else:
        source, source_real = padded(questions.sources(model.spec.vocabulary), side)
        logits = model.logits(source, target, source_real=source_real, real=real)
    return [[row[keep]] for row, keep in zip(logits, real, strict=True)]


def read(model: Any, side: str) -> Answers:
    """Return what every head of an encoder says; of one without heads, its stream."""
    if isinstance(model, DualEncoder):
        return paired(model, side)
    if (images := model.spec.inputs.get("images")) is not None:
        x_BLD, real = model.hidden(placed(torch.stack(questions.images(images.shape)))), None
    else:
        ids, real = padded(questions.texts(model.spec.vocabulary), side)
        shown = padded(questions.token_types(), side)[0] if getattr(model.embed, "segment", None) is not None else None
        x_BLD = model.hidden(ids, real=real, token_types=shown)
    ends = real if getattr(model.spec, "end", None) is None else model.spec.counted({"ids": ids, "real": real})
    said = [head(x_BLD, ends) for head in model.heads.values()] or [x_BLD]
    keep_BL = torch.ones(x_BLD.shape[:2], dtype=torch.bool, device=x_BLD.device) if real is None else real
    length = x_BLD.shape[1]
    return [
        [a[b][keep] if a.dim() == 3 and a.shape[1] == length else a[b] for a in said] for b, keep in enumerate(keep_BL)
    ]


def paired(model: DualEncoder, side: str) -> Answers:
    """Return what a dual encoder says of the first picture with the first text, of the second with the second, ..."""
    ids, real = padded(questions.texts(model.spec.target_vocabulary or 0), side)
    reads: Any = model.spec.sees.embed.input
    seen = placed(torch.stack(questions.images(reads.shape)))
    said = model({"images": seen, "ids": ids, "real": real}, model.spec.head_names)
    return [[a[b, b : b + 1] if name == "similarity" else a[b] for name, a in said.items()] for b in range(len(ids))]


def learned(model: Any) -> float:
    """Return the loss, and leave its gradients on the model: through training's own step where a recipe has one."""
    if not model.spec.writes:
        loss = questions.distance(answers(model, "right"))
        loss.backward()
        return float(loss.detach())
    if model.spec.reads_source and "images" in model.spec.inputs:
        return _cross_entropy(model)
    from orrery.training.precision import Precision
    from orrery.training.step import accumulate

    objective, batch = lesson(model)
    plain = Precision("float32", "plain", device().type, torch.get_num_threads())
    with torch.random.fork_rng(devices=[]):
        step_result = accumulate(
            model, objective, batch, micro_batch=2, seed=(0, 0), ranks=OneOf(0, 1), precision=plain
        )
    return step_result.loss


def lesson(model: Any) -> tuple[Objective, Batch]:
    """Return the objective of a model that writes, and a batch of it, padded on the right."""
    if not model.spec.reads_source:
        ids, real = padded(questions.texts(model.spec.vocabulary), "right")
        targets = ids[:, 1:].masked_fill(~real[:, 1:], IGNORED)
        return CausalLanguageModel(), {"ids": ids[:, :-1], "targets": targets, "real": real[:, :-1]}
    ids, real = padded(questions.texts(model.spec.target_vocabulary, questions.TARGETS), "right")
    targets = ids[:, 1:].masked_fill(~real[:, 1:], IGNORED)
    source, source_real = padded(questions.sources(model.spec.vocabulary), "right")
    return SequenceToSequence(), {"ids": ids[:, :-1], "targets": targets, "source": source, "source_real": source_real}


def _cross_entropy(model: Any) -> float:
    """Return the mean cross entropy of the next tokens of captions, which no recipe learns."""
    rows = questions.texts(model.spec.target_vocabulary, questions.TARGETS)
    logits = torch.cat([said[0][:-1] for said in written(model, "right")])
    loss = F.cross_entropy(logits, placed(torch.cat([row[1:] for row in rows])))
    loss.backward()
    return float(loss.detach())


def padded(rows: Sequence[Tensor], side: str) -> tuple[Tensor, Tensor]:
    """Return rows as one rectangle, padded with zeros on a side, and which of its places are real."""
    longest = max(len(row) for row in rows)
    ids, real = torch.zeros(len(rows), longest, dtype=torch.long), torch.zeros(len(rows), longest, dtype=torch.bool)
    for b, row in enumerate(rows):
        place = slice(longest - len(row), None) if side == "left" else slice(len(row))
        ids[b, place], real[b, place] = row, True
    return placed(ids), placed(real)
