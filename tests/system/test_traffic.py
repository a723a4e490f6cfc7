"""What processes send each other in a step is what ``orrery plan`` says."""

from pathlib import Path

import pytest

import traffic
from processes_together import told

PROGRAM = Path(traffic.__file__)
LOGITS = traffic.ROWS * traffic.SIZES["vocab_size"] // 2 * 8
"""A head that is shared asks for its width: a row of logits for each piece, which a plan leaves out."""


def sent(layout: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return the bytes that the first of two processes sends, by operation, and those of the plan."""
    found = told(str(PROGRAM), *layout.split())
    return found["sent"], found["plan"]


@pytest.mark.parametrize("layout", ["data=2", "fsdp=2 data=1", "context=2", "pipeline=2"])
def test_bytes_are_those_of_the_plan(layout: str) -> None:
    own, planned = sent(layout)
    sums, kind = own.pop("allreduce", 0), layout.partition("=")[0]
    own.pop("recv", None)
    assert (sums if kind == "data" else sum(own.values())) == planned[kind], own


@pytest.mark.parametrize("sequence", ["", "sequence=0"])
def test_layers_that_are_parted_send_as_much_as_planned(sequence: str) -> None:
    own, planned = sent(f"tensor=2 {sequence}")
    vectors = own.pop("all_reduce of vectors", 0)  # gradients of norms on own tokens
    assert bool(vectors) == (not sequence)
    assert sum(own.values()) - own["allreduce"] - LOGITS == planned["tensor"], own


def test_tokens_go_to_their_experts_as_often_as_planned() -> None:
    own, planned = sent("expert=2 data=2 family=mixtral")
    assert own["allreduce"] == planned["data"]
    assert own["all_to_all_single"] / 2 == pytest.approx(planned["expert"], rel=0.05)  # half stays where it is
