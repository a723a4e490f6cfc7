"""What the program prints of one model: the rows add up, and a training is told where its tokens are known."""

import pytest
import torch

from orrery.cli.plan_model import matrix_rows, memory_rows, operation_rows, print_plan, print_training
from orrery.families import load_family
from orrery.planning.plan import Plan
from orrery.planning.presets import palm


def planned(family="gpt2", **what):
    rules = load_family(family)
    return Plan("small", rules.spec(rules.TINY), 4, 24, **what)


@pytest.fixture(scope="module")
def plan():
    return planned()


def number(text):
    return int(text.replace(",", ""))


@pytest.mark.parametrize(("tokens", "told"), [(None, False), (3e9, True)])
def test_a_whole_training_is_told_where_its_tokens_are_known(tokens, told, capsys):
    print_plan(planned(tokens=tokens))
    printed = capsys.readouterr().out
    assert ("a training on 3,000,000,000 tokens" in printed) is told
    assert ("petaflop/s-days" in printed) is told


def test_a_training_is_counted_and_estimated_side_by_side(capsys):
    print_training(8.64e19 * 5, 2e9, 12_000_000_000)
    (_, tokens, counted, rule) = capsys.readouterr().out.splitlines()
    assert tokens == "a training on 2,000,000,000 tokens"
    assert counted.split() == ["counted", "4.32e+20", "operations,", "5", "petaflop/s-days"]
    assert rule.split()[:5] == ["6", "N", "D", "1.44e+20", "operations,"]


def test_memory_adds_up_and_recomputation_takes_away_what_it_does_not_keep(plan):
    rows = {name: number(count) for name, count, _, _ in memory_rows(plan)}
    parts = rows["weights"], rows["gradients"], rows["optimizer"], rows["activations"]
    assert rows["training in all"] == plan.memory == sum(parts)
    assert rows["activations, recomputed"] == plan.recomputed_bytes < rows["activations"]
    assert rows["training, recomputed"] == sum(parts[:3]) + plan.recomputed_bytes
    assert rows["cache of a row"] == 24 * rows["cache of a token"] > 0
    for _, count, gigabytes, _ in memory_rows(plan):
        assert float(gigabytes) == pytest.approx(number(count) / 1e9, abs=5e-4)


@pytest.mark.parametrize(
    ("family", "cache", "state"), [("gpt2", 1, 0), ("mamba", 0, 1), ("jamba", 1, 1), ("bert", 0, 0)]
)
def test_only_what_a_model_has_gets_a_row(family, cache, state):
    names = [name for name, *_ in memory_rows(planned(family))]
    assert (names.count("cache of a row"), names.count("cache of a token"), names.count("state of a row")) == (
        cache,
        cache,
        state,
    )


def test_operations_of_both_passes_add_up(plan):
    rows = {name: [number(cell) for cell in cells] for name, *cells in operation_rows(plan)}
    assert list(rows) == ["forward", "backward", "training"]
    for weights, tokens, total, each in rows.values():
        assert total == weights + tokens
        assert each == pytest.approx(total / (4 * 24), abs=0.5)
    for place in range(3):
        assert rows["training"][place] == rows["forward"][place] + rows["backward"][place]
    assert rows["backward"][0] > rows["forward"][0]


def test_matrices_are_counted_with_their_copies_and_tied_ones_are_no_parameters():
    plan = Plan("palm", palm(24, 3, 2, vocabulary=61), 1, 8)
    rows = matrix_rows(plan)
    counted = [number(count) for *_, count in rows if count != "tied"]
    assert sum(counted) == sum(one.numel * one.copies for one in plan.matrices if not one.tied)
    assert [count for *_, count in rows].count("tied") == 1
    for _, shape, many, count in rows:
        sizes = [number(size) for size in shape.split(" x ")]
        if count != "tied":
            assert number(count) == torch.Size(sizes).numel() * number(many)


def test_a_model_is_printed_with_whole_numbers(plan, capsys):
    print_plan(plan)
    shown = capsys.readouterr()
    assert f"{plan.parameters.trained:,}" in shown.out
    assert "a step of 4 x 24 tokens, products in bfloat16" in shown.out
    assert shown.err == "rehearsing a step of small\n"
    assert "active" not in shown.out
    print_plan(planned("mixtral"))
    assert "those that one token meets" in capsys.readouterr().out
