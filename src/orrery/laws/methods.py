"""Golden numbers of training and decoding: what the methods' formulas give, computed once without Orrery's code.

``tests/goldens/make.py`` wrote them; the models are those of golden outputs.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from orrery.checkpoints.rules import to_theirs
from orrery.exchange.reading.weights import fill, weights_of
from orrery.families import load_family, rules_of
from orrery.generation.filters import History
from orrery.generation.samplers import draw, sampler
from orrery.generation.search import LengthPenalty, beam_search, exhaustive
from orrery.laws import questions
from orrery.laws.evidence import FLOAT64, Evidence, exactly_equal, within
from orrery.laws.formula import numbers
from orrery.laws.outputs import apart, asked, built, compared, padded
from orrery.laws.runs import recipe, scratch
from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED
from orrery.nn.masks import TokenPositions
from orrery.nn.positions.scheme import PositionCall
from orrery.nn.residual import Dropout
from orrery.objectives.causal import CausalLanguageModel
from orrery.objectives.seq2seq import SequenceToSequence
from orrery.planning import presets

DRAWS = 4000
LISTED = 4
"""The tokens of answers that an exhaustive search lists."""
SINGLE = 1e-6


def golden(name: str) -> list[dict[str, Any]]:
    """Return the golden numbers of one of the methods."""
    text = (files("orrery.laws") / "reference" / f"_{name}.json").read_text(encoding="utf-8")
    cases: list[dict[str, Any]] = json.loads(text)["cases"]
    return cases


def check() -> Iterator[Evidence]:
    """Train, sample and search, and compare."""
    yield from trained()
    yield from sampled()
    yield from searched()
    yield from tabulated()
    yield from preset_outputs()
    yield within("dropout: kept channels, and their size", "outputs", "", dropped(), 5.0)


def trained() -> Iterator[Evidence]:
    """Compare losses, clipped norms, validation and final weights of short runs through the training loop."""
    for case in golden("training"):
        results = run(case)
        for key, expected in case["found"].items():
            value = apart(results[key], expected)
            yield within(f"{case['name']}: {key} == {case['by']}", "outputs", "", value, FLOAT64)


def run(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run through the training loop gives."""
    from orrery.training.evaluate import Validation
    from orrery.training.folder import open_run_folder
    from orrery.training.loop import Parts, train

    model = built(case["family"], case["config"])
    reads = model.spec.reads_source
    kind = SequenceToSequence if reads else CausalLanguageModel
    held_back = Validation(Lessons(reads, questions.HELD_BACK), 2, kind())
    parts = Parts(model, kind(case["smoothing"]), Lessons(reads), held_back)
    with scratch() as folder:
        with open_run_folder(folder / "run", resume=False) as opened, torch.random.fork_rng(devices=[]):
            settings = recipe(steps=case["steps"], **{**case["training"], "micro_batch": 2})
            train(parts, settings.model_copy(update={"evaluation": _every(settings, case["steps"])}), opened)
        lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = [json.loads(line) for line in lines]
    ours = {name: p.detach() for name, p in model.named_parameters()}
    weights = questions.slope(to_theirs(ours, rules_of(load_family(case["family"]), case["config"])))
    return {
        "losses": [line["train/loss"] for line in metrics],
        "gradient norms": [line["grad_norm"] for line in metrics],
        "validation": metrics[-1]["val/loss"],
        "final weights": [weights["norm"], weights["slope"]],
    }


def _every(settings: Any, steps: int) -> Any:
    return settings.evaluation.model_copy(update={"every": steps})


class Lessons:
    """Batches of formula rows by the number of the step, padded on the right."""

    def __init__(self, reads: bool, first: int = 0) -> None:
        self.reads, self.first = reads, first

    def batch(self, step: int) -> Batch:
        """Return the batch of a step."""
        ids, real = padded(questions.lesson(self.first + step), "right")
        batch = {"ids": ids[:, :-1], "targets": ids[:, 1:].masked_fill(~real[:, 1:], IGNORED)}
        if not self.reads:
            return {**batch, "real": real[:, :-1]}
        source, source_real = padded(questions.lesson(self.first + step, "source"), "right")
        return {**batch, "source": source, "source_real": source_real}

    def state(self) -> dict[str, Any]:
        """Return nothing: the step says all."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore nothing: the lessons are a function of the step."""


def sampled() -> Iterator[Evidence]:
    """Compare the probabilities that each setting leaves, and how often each token is drawn."""
    logits, seen = questions.scores()
    history = History(seen, torch.zeros_like(seen, dtype=torch.int32))
    for case in golden("sampling"):
        chosen = sampler(**case["settings"])
        probabilities = chosen.filtered(logits, history).softmax(-1)
        value = apart(probabilities.flatten().tolist(), case["found"])
        yield within(f"{case['name']}: probabilities == {case['by']}", "outputs", "", value, FLOAT64)
    rows = logits[:1].expand(DRAWS, -1)
    tokens = draw(rows, [torch.Generator().manual_seed(n) for n in range(DRAWS)])
    p = logits[0].softmax(-1)
    often = torch.bincount(tokens, minlength=len(p)) / DRAWS
    value = float(((often - p).abs() / (p * (1 - p) / DRAWS).sqrt()).max())
    yield within("draws: deviations from the probabilities, in standard errors", "outputs", "", value, 5.0)


class Bigram:
    """A model that knows nothing but the last token and its place: what a search finds in it can be listed."""

    first_token = None

    def __init__(self, table: Tensor) -> None:
        self.table = table

    def start(self, source: Tensor, capacity: int, lengths: Any = None) -> tuple[Tensor, "Lengths"]:
        """Read prompts of one length."""
        return self.table[source.shape[1] - 1, source[:, -1]], Lengths([source.shape[1]] * len(source))

    def step(self, tokens: Tensor, session: "Lengths", lengths: Any = None) -> Tensor:
        """Take one token a row."""
        logits_BNV = self.table[torch.tensor(session.lengths)[:, None], tokens]
        session.lengths = [length + tokens.shape[1] for length in session.lengths]
        return logits_BNV


class Lengths:
    """How many tokens each row has, which is all that a bigram's session remembers."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def select(self, rows: list[int]) -> "Lengths":
        """Return a session of the given rows."""
        return Lengths([self.lengths[row] for row in rows])


def searched() -> Iterator[Evidence]:
    """Compare the best answers, with their scores, of exhaustive and of beam search."""
    from orrery.generation.row import Limits

    evidence = partial(within, law="outputs", family="", bound=FLOAT64)
    model: Any = Bigram(questions.table())
    for case in golden("search"):
        limits, penalty = Limits(case["tokens"], 20, end=(0,)), LengthPenalty(case["alpha"])
        everything = exhaustive(model, [1], Limits(LISTED, 20, end=(0,)), penalty=penalty)[
            : len(case["best"]["scores"])
        ]
        beams = beam_search(model, [[1]], limits, case["width"], penalty=penalty, answers=case["width"])[0]
        prompts = [[token] for token in range(1, 7)]
        alone = beam_search(model, prompts, limits, case["width"], penalty=penalty)
        value = apart([best[0].score for best in alone], case["first"])
        yield evidence(f"{case['name']}: one answer a prompt, scores == {case['by']}", value=value)
        for name, answers in (("best", everything), ("beams", beams)):
            expected, of = case[name], f"{case['name']}: {name}"
            value = apart([answer.score for answer in answers], expected["scores"])
            yield evidence(f"{of}, scores == {case['by']}", value=value)
            wrong = sum(answer.ids != ids for answer, ids in zip(answers, expected["ids"], strict=True))
            yield exactly_equal(f"{of}, answers that differ", "outputs", "", wrong)


def tabulated() -> Iterator[Evidence]:
    """Compare the sinusoids that a new model begins with, which a file would overwrite; they are float32."""
    for case in golden("tables"):
        spec: Any = load_family(case["family"]).spec(case["config"])
        scheme, places = (
            spec.reader.stack.positions["absolute"].build(spec.width),
            TokenPositions(torch.arange(spec.context)[None]),
        )
        bound = scheme.bind(PositionCall(places, {}, spec.context, torch.float64))
        value = apart(questions.summary([[bound.table_BLD[0].detach().double()]])["sums"], case["found"])
        yield within(f"positions of a new model == {case['by']}", "outputs", case["family"], value, SINGLE)


def preset_outputs() -> Iterator[Evidence]:
    """Compare tiny models of the presets whose architecture no family has."""
    for case in golden("presets"):
        model: Any = getattr(presets, case["name"])(**case["sizes"]).build(0).to(torch.float64).eval()
        fill(model, {name: numbers(name, tensor.shape) for name, tensor in weights_of(model).items()})
        for part, value in compared(asked(model, dict), case["found"]).items():
            yield within(f"preset {case['name']}: {part} == {case['by']}", "outputs", "", value, FLOAT64)


def dropped() -> float:
    """Return by how many standard errors the share of kept channels is off; far where one has not the right size."""
    rate, size = 0.3, 40_000
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        dropped_out = Dropout.Spec(rate=rate).build(1).train()(torch.ones(size))
    kept = dropped_out != 0
    right_size = torch.allclose(dropped_out[kept], torch.tensor(1 / (1 - rate)))
    error = abs(float(kept.float().mean()) - (1 - rate)) / (rate * (1 - rate) / size) ** 0.5
    return error if right_size else float("inf")
