"""What processes that share rows or stages each compute, and what they refuse; without other processes."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family, spec_of
from orrery.objectives import OBJECTIVES
from orrery.recipes.parallel import ParallelSettings
from orrery.training.parallel.columns import columns_of, own_columns
from orrery.training.parallel.context_parallel import refuse_unshared
from orrery.training.parallel.expert_parallel import refuse_undivided
from orrery.training.parallel.pipeline import depths_of, refuse_uncut
from orrery.training.parallel.placement import refuse_unshared as refuse_objective


@pytest.mark.parametrize("length", [1, 7, 8, 12])
@pytest.mark.parametrize("context", [1, 2, 3, 4])
def test_every_place_of_a_row_is_computed_once(length: int, context: int) -> None:
    shares = [columns_of(length, context, number) for number in range(context)]
    assert len({len(share) for share in shares}) == 1
    places = torch.cat(shares)
    assert sorted(places.tolist()) == [*range(len(places))]
    assert length <= len(places) < length + 2 * context


def test_each_process_has_as_much_to_see() -> None:
    seen = [int((columns_of(64, 4, number) + 1).sum()) for number in range(4)]
    assert len(set(seen)) == 1


def test_own_tokens_know_their_positions_and_nothing_behind_the_row() -> None:
    batch = {"ids": torch.arange(10).view(2, 5), "targets": torch.ones(2, 5).long(), "prefix": torch.tensor([2, 3])}
    batch |= {"weights": torch.full((2, 5), 0.5), "group": torch.arange(2)}
    own = own_columns(batch, 2, 0)  # pieces of two: the first, and the last, which lies behind the row
    assert own["ids"].tolist() == [[0, 1, 0, 0], [5, 6, 0, 0]]
    assert own["positions"].tolist() == [[0, 1, 0, 0]] * 2
    assert own["targets"].tolist() == [[1, 1, -100, -100]] * 2
    assert own["real"].tolist() == [[True, True, False, False]] * 2
    assert own["prefix"].tolist() == [[2, 2, 0, 0], [3, 3, 0, 0]]
    assert own["group"].tolist() == [0, 1]
    assert own_columns(batch, 2, 1)["positions"].tolist() == [[2, 3, 4, 0]] * 2


def test_positions_of_packed_and_padded_rows_are_those_of_the_whole_row() -> None:
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1, -1]])
    own = own_columns({"ids": torch.ones(1, 8).long(), "documents": documents}, 2, 1)
    assert own["positions"].tolist() == [[2, 0, 1, 2]]
    assert own["documents"].tolist() == [[0, 1, 1, 1]]
    assert "real" not in own
    real = torch.arange(8)[None] > 2  # padded on the left
    assert own_columns({"ids": torch.ones(1, 8).long(), "real": real}, 2, 1)["positions"].tolist() == [[0, 0, 1, 2]]


@pytest.mark.parametrize(
    ("layers", "pipeline", "interleave", "sizes"),
    [
        (4, 2, 1, [2, 2]),
        (4, 2, 2, [1, 1, 1, 1]),
        (6, 4, 1, [1, 2, 2, 1]),
        (3, 1, 1, [3]),
        (10, 3, 2, [1, 2, 2, 2, 2, 1]),
    ],
)
def test_layers_are_cut_as_the_planner_counts_them(
    layers: int, pipeline: int, interleave: int, sizes: list[int]
) -> None:
    depths = depths_of(layers, ParallelSettings(pipeline=pipeline, interleave=interleave))
    assert [len(piece) for piece in depths] == sizes
    assert [depth for piece in depths for depth in piece] == [*range(layers)]


@pytest.mark.parametrize(("layers", "pipeline"), [(3, 2), (2, 4), (5, 3)])
def test_layers_that_cannot_be_cut_are_refused_with_what_would_fit(layers: int, pipeline: int) -> None:
    with pytest.raises(UsageError, match=f"does not cut {layers} layers") as fault:
        depths_of(layers, ParallelSettings(pipeline=pipeline))
    assert "would fit together: 1" in fault.value.hint


def model(family: str, **more: Any) -> Any:
    rules = load_family(family)
    return spec_of(rules, {**rules.TINY, **more}).build()


@pytest.mark.parametrize(
    ("family", "refuse", "said"),
    [
        ("bert", refuse_unshared, "parallel.context 2: the rows of a"),
        ("mamba", refuse_unshared, "parallel.context 2: the model has mixers with a state"),
        ("t5", refuse_uncut, "parallel.pipeline 2: the stages of a"),
        ("zamba2", refuse_uncut, "parallel.pipeline 2: a block of the model stands at several depths"),
    ],
)
def test_models_that_see_more_are_refused_by_what_they_have(family: str, refuse: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said) as fault:
        refuse(model(family), 2)
    assert "parallel.fsdp shares the weights of every model" in fault.value.hint


def test_a_tuned_prefix_is_refused_where_rows_are_shared() -> None:
    own = model("llama")
    own.stack.learned_places = 3
    with pytest.raises(UsageError, match="has a tuned prefix"):
        refuse_unshared(own, 2)


def test_experts_that_do_not_divide_are_refused() -> None:
    with pytest.raises(UsageError, match="the model has no mixture of experts"):
        refuse_undivided([], 2)
    layer: Any = SimpleNamespace(experts=range(6))
    with pytest.raises(UsageError, match=r"parallel\.expert 4 does not divide the 6 experts of stack\.here") as fault:
        refuse_undivided([("stack.here", layer)], 4)
    assert fault.value.hint == "would fit: 1, 2, 3, 6"


@pytest.mark.parametrize(("degree", "needs"), [("context", "whole rows"), ("pipeline", "the whole model at once")])
def test_objectives_of_whole_rows_are_refused(degree: str, needs: str) -> None:
    degrees = ParallelSettings(**{degree: 2})
    refuse_objective(OBJECTIVES.find("sft")(), degrees)
    with pytest.raises(UsageError, match=f"parallel.{degree} 2: the objective seq2seq needs {needs}"):
        refuse_objective(OBJECTIVES.find("seq2seq")(), degrees)
