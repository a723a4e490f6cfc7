"""Every lab keeps its claims with its quick setting, and fails where the thing that it is about is broken."""

import inspect
import json
import math

import numpy as np
import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.linear.gated_delta import Forgetting
from orrery.nn.recurrent.attention_decoder import EncodedSource
from orrery_course.labs import _lab as lab
from orrery_course.labs import _pairs as pairs
from orrery_course.labs import (
    alignment,
    associative,
    bottleneck,
    contextual,
    gradients,
    induction,
    length,
    recall,
    retrieval,
    scores,
)


def failed(name: str, seed: int = 0) -> list[str]:
    """Return the claims that the quick lab does not keep."""
    outcome = lab.carry_out(name, [seed], quick=True)
    assert outcome.figure.startswith("<svg")
    return outcome.failed


@pytest.fixture
def blurred(monkeypatch) -> None:
    """Attention that looks everywhere alike."""

    def mean(self, scoring, q_BD, show):
        pattern_BS = show("pattern", self.seen_BS / self.seen_BS.sum(1, keepdim=True))
        return show("mixed", torch.einsum("bs,bsm->bm", pattern_BS, self.memory_BSM))

    monkeypatch.setattr(EncodedSource, "attend", mean)


@pytest.mark.parametrize("name", lab.questions())
def test_a_lab_asks_one_question(name: str) -> None:
    question = lab.questions()[name]
    assert question.endswith("?")
    assert isinstance(lab.load_lab(name), lab.Lab)


LONG_BEFORE = ("positions", "scaling", "gradients")
"""Labs that compute or build something for longer before they train."""


@pytest.mark.parametrize("name", lab.questions())
def test_a_lab_runs_whole_unless_it_is_asked_to_be_quick(name: str, monkeypatch) -> None:
    own = lab.load_lab(name)
    assert inspect.signature(own.run).parameters["quick"].default is False
    if name in LONG_BEFORE or not hasattr(own, "fit"):  # some train nothing
        return

    class BegunError(Exception):
        """The first training has been asked for."""

    def begin(model, *how, **more):
        raise BegunError([part for part in (*how, *more.values()) if isinstance(part, int | float)])

    def asked(**quick):
        with pytest.raises(BegunError) as error:
            own.run(0, **quick)
        return error.value.args

    monkeypatch.setattr(own, "fit", begin)
    assert asked() == asked(quick=False)


def test_a_lab_of_a_program_is_found_by_name(monkeypatch) -> None:
    monkeypatch.setattr(lab, "_registered", {})
    lab.register("own", "Is it found?", bottleneck)
    assert lab.questions()["own"] == "Is it found?"
    assert lab.load_lab("own") is bottleneck
    with pytest.raises(UsageError, match="there is a lab recall already"):
        lab.register("recall", "Again?", bottleneck)


# -- retrieval


def test_one_hot_does_not_find_the_hotel_and_dense_does() -> None:
    for seed in range(12):
        assert failed("retrieval", seed) == []
    numbers = retrieval.run(0)
    assert set(numbers["one-hot"].values()) == {0.5}  # Seattle is in every document, motel in none
    assert retrieval.run(0) == numbers


def test_the_search_fails_where_dense_vectors_say_nothing(monkeypatch) -> None:
    monkeypatch.setattr(retrieval, "dense_vectors", lambda corpus, ids: np.eye(len(ids)))
    assert failed("retrieval") == ["by dense vectors the hotel comes first"]


def test_what_the_search_lab_holds() -> None:
    def kept(one_hot: float, dense: float) -> list[bool]:
        texts = retrieval.DOCUMENTS
        accuracies = {"one-hot": dict.fromkeys(texts, 0.5), "dense": dict.fromkeys(texts, 0.3)}
        accuracies["one-hot"][texts[-1]], accuracies["dense"][retrieval.SOUGHT] = one_hot, dense
        return [margin >= 0 for margin in retrieval.margins(accuracies).values()]

    assert kept(0.5, 0.41) == [True, True]
    assert kept(0.6, 0.41) == kept(0.4, 0.41) == [False, True]
    assert kept(0.5, 0.39) == [True, False]


def test_the_words_of_the_search_are_the_slides(data_set) -> None:
    slide = json.loads(data_set("course-slides/slides.json").read_text(encoding="utf-8"))["retrieval"]
    assert (slide["query"], slide["document"]) == (retrieval.QUERY, retrieval.SOUGHT)


def test_the_worst_seed_decides(monkeypatch) -> None:
    class Fake:
        def __init__(self, kept):
            self.kept = kept

        def run(self, seed, quick=False):
            return {"kept": self.kept[seed]}

        def margins(self, numbers):
            return {"claim": numbers["kept"]}

        def figure(self, runs):
            return f"<svg>{len(runs)}</svg>"

    for kept, failed in (((0.1, 0.0), []), ((0.1, -0.1), ["claim"]), ((0.1, math.nan), ["claim"])):
        monkeypatch.setattr(lab, "load_lab", lambda name, kept=kept: Fake(kept))
        outcome = lab.carry_out("any", range(2))
        assert (outcome.failed, outcome.figure) == (failed, "<svg>2</svg>")
    with pytest.raises(UsageError, match="at least one seed"):
        lab.carry_out("any", [])


def test_no_such_lab() -> None:
    with pytest.raises(UsageError, match="nope") as error:
        lab.load_lab("nope")
    assert "alignment" in error.value.hint


def test_a_quick_lab_gives_the_same_numbers_again(monkeypatch) -> None:
    monkeypatch.setattr(contextual, "QUICK_STEPS", 20)
    assert contextual.run(3, quick=True) == contextual.run(3, quick=True)


# -- alignment


def test_attention_runs_backwards() -> None:
    assert failed("alignment") == []


def test_a_blurred_attention_is_not_on_the_antidiagonal(blurred) -> None:
    # Six words can be learned by heart; where the weight lies cannot.
    assert any("of the weight" in claim for claim in failed("alignment"))


def test_what_is_near_the_antidiagonal() -> None:
    flipped = torch.eye(5).flip(0)[None]
    assert alignment.near_antidiagonal(flipped) == 1
    assert alignment.near_antidiagonal(flipped.roll(1, 2), distance=0) == 0
    # Of 25 places 5 are on it and 4 on either side.
    assert alignment.near_antidiagonal(torch.full((1, 5, 5), 0.2)) == pytest.approx(13 / 25)


def test_pairs_are_backwards_and_no_word_comes_twice() -> None:
    task = pairs.ReversedPairs(9, 4, 2, 6)
    batch = task.of_length(6, torch.Generator().manual_seed(0))
    for source, ids, targets in zip(*(batch[name].tolist() for name in ("source", "ids", "targets")), strict=True):
        assert len(set(source)) == 6
        assert (ids, targets) == ([pairs.START, *source[::-1]], [*source[::-1], pairs.END])
    assert task(torch.Generator().manual_seed(1))["source"].shape[1] in range(2, 7)


# -- associative


@pytest.mark.slow
def test_attention_recalls_all_pairs_and_an_lstm_few() -> None:
    assert failed("associative") == []


@pytest.mark.slow
def test_values_of_other_rows_are_not_recalled(monkeypatch) -> None:
    def shuffled(self, rng):
        batch = draw(self, rng)
        return {**batch, "targets": batch["targets"].roll(1, 0)}

    draw = associative.Associations.__call__
    monkeypatch.setattr(associative.Associations, "__call__", shuffled)
    monkeypatch.setattr(associative, "QUICK", (associative.ATTENTION,))
    assert failed("associative") == ["attention (Llama) recalls 95% of 8 pairs"]


def test_the_models_that_recall_pairs_are_of_one_size() -> None:
    sizes = [associative.parameters(associative.network(name, 0)) for name in associative.MODELS]
    assert max(sizes) / min(sizes) < 1.1


def test_the_parts_that_draw_their_own_weights_have_them() -> None:
    # As torch leaves them all paces are zero, and half of the memory is forgotten at each token.
    model = associative.network(associative.DELTA, 0)
    paces = [part.pace for part in model.modules() if isinstance(part, Forgetting)]
    assert len(paces) == associative.DEPTH
    assert all((pace >= 0).all() and (pace <= math.log(16)).all() and pace.any() for pace in paces)


def test_each_key_is_asked_for_its_value() -> None:
    batch = associative.Associations((3,), rows=50)(torch.Generator().manual_seed(0))
    orders = set()
    for ids, targets in zip(batch["ids"].tolist(), batch["targets"].tolist(), strict=True):
        keys, values, asked = ids[:6:2], ids[1:6:2], ids[6:]
        assert len(set(keys)) == 3
        assert max(keys) < associative.KEYS <= min(values)
        assert targets == [-100] * 6 + [dict(zip(keys, values, strict=True))[key] for key in asked]
        orders.add(tuple(keys.index(key) for key in asked))
    assert len(orders) == 6


def test_what_can_be_had_without_a_key() -> None:
    one, other, third = (associative.KEYS + value for value in range(3))
    rows = [[0, one, 1, one, 2, other, 3, third, 0, 1, 2, 3], [0, one, 1, other, 2, third, 3, third + 1, 3, 2, 1, 0]]
    assert associative.guess({"ids": torch.tensor(rows)}) == (2 / 4 + 1 / 4) / 2


def test_what_the_associative_lab_holds() -> None:
    def kept(**part: float) -> list[str]:
        right = {name: 1.0 for name in associative.KNOWN} | {name: 0.3 for name in associative.FORGETFUL}
        accuracies = {name: {"2": 1.0, "8": value} for name, value in (right | part).items()}
        return [claim for claim, margin in associative.margins({"accuracy": accuracies}).items() if margin < 0]

    assert kept() == []
    assert kept(Based=0.6) == ["Based recalls 70% of 8 pairs"]
    assert kept(LSTM=0.6) == ["LSTM recalls less than 50%"]


# -- bottleneck


def test_the_transformer_waits_for_no_word() -> None:
    assert failed("bottleneck") == []


def test_a_recurrence_in_the_transformers_place_is_found(monkeypatch) -> None:
    monkeypatch.setitem(bottleneck.MODELS, "Transformer", bottleneck.MODELS["RNN"])
    assert failed("bottleneck") == ["the Transformer's chain is the same for every length"]


def test_the_longest_chain_is_counted_by_hand() -> None:
    x = torch.ones(2, requires_grad=True)
    short, long = x * 2, x.exp().exp().exp()
    assert bottleneck.longest_chain(short + long) == 5  # x, three times exp, the sum
    y = x
    for _ in range(3000):
        y = y * y
    assert bottleneck.longest_chain(y) == 3001


# -- contextual


def test_the_sense_is_in_the_context() -> None:
    assert failed("contextual") == []


def test_without_attention_there_is_no_sense(monkeypatch) -> None:
    def deaf(*arguments):
        model = original(*arguments)
        model.kernel = lambda q, kv, operands: kv.v_BKSE
        return model

    original = contextual.build
    monkeypatch.setattr(contextual, "build", deaf)
    assert "the contextual ones have a cosine below 0.8" in failed("contextual")


def test_the_sentences_are_the_slides(data_set) -> None:
    slide = json.loads(data_set("course-slides/slides.json").read_text(encoding="utf-8"))["contextual"]
    ours = [text.replace(" .", ".").capitalize() for text in (contextual.EATEN, contextual.SWITCHED_ON)]
    assert [text.lower() for text in slide["same_word"]] == [text.lower() for text in ours]
    assert {contextual.EATEN, contextual.SWITCHED_ON} < set(contextual.sentences())


# -- gradients


@pytest.mark.slow
def test_gradients_vanish_explode_or_stay() -> None:
    assert failed("gradients") == []


@pytest.mark.slow
def test_forget_gates_that_are_shut_are_found(monkeypatch) -> None:
    monkeypatch.setitem(gradients.FORGET, gradients.OPEN, 0.0)
    assert any("begin open" in claim for claim in failed("gradients"))


def test_the_factor_is_the_slope() -> None:
    assert gradients.factor([0.7**k for k in range(40)]) == pytest.approx(0.7)
    assert gradients.factor([0.0] * 40) == pytest.approx(1.0)


# -- length


@pytest.mark.slow
def test_attention_keeps_long_sentences_level() -> None:
    assert failed("length") == []


@pytest.mark.slow
def test_without_it_they_are_not(blurred) -> None:
    claims = failed("length")
    assert any("it loses less than" in claim for claim in claims)


def test_what_the_length_lab_holds() -> None:
    def kept(enc: tuple[float, ...], search: tuple[float, ...]) -> list[bool]:
        accuracies = {
            name: dict(zip(("2", "8", "10"), values, strict=True))
            for name, values in (("rnnenc", enc), ("rnnsearch", search))
        }
        numbers = {"accuracy": accuracies, "longest trained": 8}
        return [margin > 0 for margin in length.margins(numbers).values()]

    assert kept((1.0, 0.6, 0.3), (1.0, 1.0, 0.98)) == [True, True, True, True, True]
    assert kept((0.8, 0.5, 0.3), (1.0, 1.0, 0.98)) == [False, True, True, True, True]
    assert kept((1.0, 0.9, 0.3), (1.0, 1.0, 0.98)) == [True, False, True, True, True]
    assert kept((1.0, 0.6, 0.5), (1.0, 1.0, 0.98)) == [True, True, False, True, True]
    assert kept((1.0, 0.6, 0.3), (0.8, 0.8, 0.78)) == [True, True, True, False, True]
    assert kept((1.0, 0.6, 0.3), (1.0, 1.0, 0.9)) == [True, True, True, True, False]


def test_the_order_is_free_on_one_side_and_fixed_on_the_other() -> None:
    task = pairs.FreeOrder(12, 50, 2, 4, parts=6)
    batch = task.of_length(4, torch.Generator().manual_seed(0))
    part_of = ((batch["source"] - pairs.FIRST) // 2).tolist()
    assert all(len(set(parts)) == 4 for parts in part_of)
    assert any(parts != sorted(parts) for parts in part_of)
    assert {word for row in batch["source"].tolist() for word in row} == set(range(pairs.FIRST, pairs.FIRST + 12))
    assert torch.equal(batch["targets"][:, :-1], batch["source"].sort(1).values)


# -- recall


@pytest.mark.slow
def test_the_transformer_alone_remembers_from_afar() -> None:
    assert failed("recall") == []


@pytest.mark.slow
def test_words_of_another_row_are_not_recalled(monkeypatch) -> None:
    def shuffled(self, rng):
        batch = draw(self, rng)
        return {**batch, "targets": batch["targets"].roll(1, 0)}

    draw = recall.Delayed.__call__
    monkeypatch.setattr(recall.Delayed, "__call__", shuffled)
    monkeypatch.setattr(recall, "MODELS", {name: recall.MODELS[name] for name in ("RNN", "Transformer")})
    assert len(failed("recall")) == 2


def test_the_models_of_recall_are_of_one_size() -> None:
    sizes = [recall.parameters(recall.build(family, 0, config)) for family, config in recall.MODELS.values()]
    assert max(sizes) / min(sizes) < 1.03


def test_the_word_of_k_steps_ago() -> None:
    batch = recall.Delayed(2)(torch.Generator().manual_seed(0))
    assert batch["targets"][:, :2].unique().tolist() == [-100]
    assert torch.equal(batch["targets"][:, 2:], batch["ids"][:, :-2])


# -- scores


@pytest.mark.slow
def test_the_scores_learn_alike_and_cost_differently() -> None:
    assert failed("scores") == []


@pytest.mark.slow
def test_without_scores_the_task_is_not_learned(blurred) -> None:
    assert any("learns the task" in claim for claim in failed("scores"))


def test_what_scores_keep_is_counted_by_hand() -> None:
    for name, kept in (("additive (Bahdanau)", scores.SOURCE * scores.WIDTH), ("dot (Luong)", 0)):
        family, config = scores.MODELS[name]
        model = scores.build(family, 0, {**pairs.translator(family, 13, scores.WIDTH), **config})
        scoring = scores.scoring_of(model)
        assert scores.kept(scoring, model.spec.reader.out_width(scores.WIDTH)) == kept


# -- induction


@pytest.mark.slow
def test_the_induction_circuit_is_found_needed_and_enough() -> None:
    assert failed("induction") == []


def test_the_induction_lab_fails_where_there_is_one_layer_or_the_wrong_edges(monkeypatch) -> None:
    monkeypatch.setattr(induction, "QUICK_STEPS", 40)
    monkeypatch.setitem(induction.CONFIG, "n_layer", 1)
    claims = list(induction.margins(induction.run(0, quick=True)).values())
    assert claims[0] < 0  # one layer cannot look a token up by what stood before it
    assert claims[3] < 0


def test_the_rows_of_the_induction_lab_repeat_what_they_say() -> None:
    task, rng = induction.Repeated(), torch.Generator().manual_seed(0)
    batch = task(rng)
    other = task.corrupted(batch, rng)
    for row, targets, corrupted in zip(batch["ids"].tolist(), batch["targets"].tolist(), other.tolist(), strict=True):
        new, again = row[:20], row[20:]
        assert len(set(new)) == 20
        begin = new.index(again[0])
        assert again == new[begin : begin + 12]
        assert targets[20:-1] == again[1:]
        assert {*targets[:20], targets[-1]} == {-100}
        assert corrupted[20:] == again
        assert corrupted[:20] != new
    assert len({tuple(row[:20]).index(row[20]) for row in batch["ids"].tolist()}) > 5  # the distance differs
