"""Metrics: what sums come to, over batches and over processes, and which way is better."""

import math

import pytest
import torch
from torch import nn

from orrery.data.sources import HeldBack
from orrery.errors import UsageError
from orrery.metrics import METRICS
from orrery.metrics.accuracy import Accuracy
from orrery.nn import cross_entropy
from orrery.objectives import Term
from orrery.objectives.causal import CausalLanguageModel
from orrery.training.distributed import Alone
from orrery.training.evaluate import Validation, evaluate
from orrery.training.pieces import Passes, passes
from orrery.training.precision import Precision
from training_toy import LENGTH, ToyDecoder, ToySource, toy_model

PLAIN = Precision("float32", "plain", "cpu", 1)


def test_the_measures_of_the_loss_follow_from_each_other() -> None:
    held_back = HeldBack(ToySource(), 1, bytes_per_token=4.0)
    sums = torch.tensor([30.0, 10.0, 0.0, 0.0, 4.0, 2.0], dtype=torch.float64)  # three terms, one that counts nothing
    value = {name: METRICS.find(name)().value(sums, held_back) for name in ("loss", "perplexity", "bpb")}
    assert value["loss"] == 5.0
    assert value["perplexity"] == pytest.approx(math.exp(5))
    assert value["bpb"] == pytest.approx(5 / math.log(2) / 4)


@pytest.mark.parametrize("at_once", [5, 2**22])
def test_accuracy_is_the_share_of_right_answers_over_all_batches(at_once: int, monkeypatch) -> None:
    monkeypatch.setattr(cross_entropy, "LOGITS_AT_ONCE", at_once)

    class Uneven(ToySource):
        """Of what is asked every second target is what the model says."""

        def batch(self, step):
            self.rows = step + 1
            batch = super().batch(step)
            with torch.no_grad():
                best = model.logits(batch["ids"]).argmax(-1)
            known = (batch["targets"] != -100) & (torch.arange(LENGTH) % 2 == 0)
            return {**batch, "targets": torch.where(known, best, batch["targets"])}

    model, objective = toy_model(dropout=0.0), CausalLanguageModel()
    validation = Validation(Uneven(seed=9), 4, objective, metrics={"right": Accuracy()})
    measures = evaluate(model, validation, PLAIN, Alone(), lambda: False)
    batches = [Uneven(seed=9).batch(step) for step in range(4)]
    with torch.no_grad():
        right = sum(
            int(((model.logits(b["ids"]).argmax(-1) == b["targets"]) & (b["targets"] != -100)).sum()) for b in batches
        )
    asked = sum(int((b["targets"] != -100).sum()) for b in batches)
    assert measures == {"val/right": right / asked}
    assert 0 < right < asked < 10 * LENGTH


def test_accuracy_of_one_answer_a_row() -> None:
    class Labelled(ToySource):
        def batch(self, step):
            batch = super().batch(step)
            return {**batch, "labels": torch.tensor([0, 1, -100, 1, 0, 1])}

    class First(nn.Module):
        def forward(self, x_BLD, real_BL=None):
            return x_BLD[:, 0, :2] * 0 + torch.tensor([0.0, 1.0])  # always the second

    class Two(ToyDecoder):
        def forward(self, batch, heads):
            own = {"verdict": First(), "language_model": self.head}
            x_BLD = self.hidden(batch["ids"])
            return {name: answer(own[name], x_BLD, None) for name, answer in heads.items()}

    torch.manual_seed(0)
    metric = Accuracy(head="verdict", field="labels")
    validation = Validation(Labelled(), 2, CausalLanguageModel(), metrics={"accuracy": metric})
    assert evaluate(Two(), validation, PLAIN, Alone(), lambda: False) == {"val/accuracy": pytest.approx(3 / 5)}
    absent = Validation(ToySource(), 2, CausalLanguageModel(), metrics={"accuracy": metric})
    with pytest.raises(UsageError, match="the batches have no labels"):
        evaluate(Two(), absent, PLAIN, Alone(), lambda: False)


def test_a_metric_of_terms_is_the_mean_of_what_the_objective_tells() -> None:
    told = {"reward_chosen": Term(torch.tensor(6.0), 4), "reward_rejected": Term(torch.tensor(2.0), 8)}
    margin, chosen = METRICS.find("reward_margin")(), METRICS.find("reward_chosen")()
    held_back = HeldBack(ToySource(), 1)
    assert margin.value(margin.measure(None, {}, told) * 2, held_back) == 6 / 4 - 2 / 8
    assert chosen.value(chosen.measure(None, {}, told), held_back) == 6 / 4
    assert chosen.value(torch.zeros(2), held_back) == 0
    with pytest.raises(UsageError, match="kl: the objective tells reward_chosen, reward_rejected, and no kl") as error:
        METRICS.find("kl")().measure(None, {}, told)
    assert "leave it out of evaluation.metrics" in error.value.hint


def test_better_is_lower_or_higher() -> None:
    loss, accuracy = METRICS.find("loss")(), Accuracy()
    assert loss.better(1.0, 2.0)
    assert not loss.better(2.0, 1.0)
    assert accuracy.better(0.6, 0.5)
    assert not accuracy.better(0.5, 0.5)
    assert loss.better(9.0, None)
    assert accuracy.better(0.0, None)


class Third:
    """One of three processes, of which only the first two have a batch."""

    rank, replica, replicas, part, parts, devices = 2, 2, 3, 2, 3, 3

    def __init__(self) -> None:
        self.sent: list[torch.Tensor] = []

    def rows(self, count: int) -> range:
        return range(0)

    def passes(self, count: int, size: int | None) -> Passes:
        return passes(self.rows(count), size)

    def own(self, batch):
        return batch

    def sum_gradients(self, parameters) -> None:
        """There are none."""

    def any(self, flag: bool) -> bool:
        return flag

    def told(self, text: str) -> str:
        return text

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        self.sent.append(values)
        others = [torch.tensor([4, 2]), torch.tensor([6.0, 3.0], dtype=torch.float64)]
        return values + others[len(self.sent) - 1]


def test_a_process_without_a_batch_adds_nothing() -> None:
    ranks = Third()
    validation = Validation(ToySource(), 2, CausalLanguageModel(), metrics={"loss": METRICS.find("loss")()})
    assert evaluate(toy_model(), validation, PLAIN, ranks, lambda: False) == {"val/loss": 2.0}
    assert [values.tolist() for values in ranks.sent] == [[0, 0], [0.0, 0.0]]
