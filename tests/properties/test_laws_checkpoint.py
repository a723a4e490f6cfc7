"""Rules of weight files: reversible over random shapes, and their errors name tensors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.checkpoints.rules import fused, rename, to_ours, to_theirs
from orrery.errors import ModelFileError, UsageError

RULES = (
    rename("token", "embed"),
    rename("h.{i}.up", "blocks.{i}.up", transpose=True),
    fused("h.{i}.qkv", ("blocks.{i}.q", "blocks.{i}.k", "blocks.{i}.v"), transpose=True),
    fused("h.{i}.bias", ("blocks.{i}.q_bias", "blocks.{i}.k_bias")),
)
rows = st.integers(1, 5)


@given(heights=st.tuples(rows, rows, rows), width=rows, layers=st.integers(1, 12), seed=st.integers(0, 999))
def test_there_and_back_is_identity(heights, width, layers, seed):
    rng = torch.Generator().manual_seed(seed)
    ours = {"embed": torch.randn(3, width, generator=rng)}
    for i in range(layers):
        ours[f"blocks.{i}.up"] = torch.randn(4, width, generator=rng)
        for name, height in zip("qkv", heights, strict=True):
            ours[f"blocks.{i}.{name}"] = torch.randn(height, width, generator=rng)
        for name, height in zip(("q_bias", "k_bias"), heights[:2], strict=True):
            ours[f"blocks.{i}.{name}"] = torch.randn(height, generator=rng)
    theirs = to_theirs(ours, RULES)
    assert theirs["h.0.qkv"].shape == (width, sum(heights))
    assert torch.equal(theirs[f"h.{layers - 1}.up"], ours[f"blocks.{layers - 1}.up"].T)
    again = to_ours(theirs, RULES, {name: tensor.shape for name, tensor in ours.items()})
    assert again.keys() == ours.keys()
    assert all(torch.equal(again[name], ours[name]) and again[name].is_contiguous() for name in ours)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h.0.up": None}, r"1 missing: h\.0\.up"),
        ({"stranger": torch.zeros(1)}, r"1 unexpected: stranger"),
        ({"h.1.up": torch.zeros(3, 4)}, r"1 unexpected: h\.1\.up"),
        ({"h.0.up": torch.zeros(4, 3)}, r"h\.0\.up has shape \[4, 3\], the configuration says \[3, 4\]"),
        ({f"x{i}": torch.zeros(1) for i in range(12)}, r"12 unexpected: x0, .*\.\.\."),
    ],
    ids=str,
)
def test_errors_name_the_tensors(change, message):
    ours = {"embed": torch.zeros(3, 3), "blocks.0.up": torch.zeros(4, 3)}
    theirs = {**to_theirs(ours, RULES), **change}
    theirs = {name: tensor for name, tensor in theirs.items() if tensor is not None}
    with pytest.raises(ModelFileError, match=message) as caught:
        to_ours(theirs, RULES, {name: tensor.shape for name, tensor in ours.items()})
    assert caught.value.exit_code == 4


@given(wrapped=st.sampled_from(["embed", *(f"blocks.{i}.{x}" for i in range(2) for x in ("up", "q", "k", "v"))]))
def test_a_tensor_that_no_rule_takes_is_refused_by_name(wrapped):
    """A LoRA keeps what it wraps under another name: the file would lack it, and whatever is fused with it."""
    names = ["embed", *(f"blocks.{i}.{x}" for i in range(2) for x in ("up", "q", "k", "v"))]
    ours = {name: torch.ones(3, 3) for name in names}
    to_theirs(ours, RULES)
    ours[f"{wrapped}.base"] = ours.pop(wrapped)
    with pytest.raises(UsageError, match=rf"without a place in the file: .*{wrapped}\.base"):
        to_theirs(ours, RULES)


def test_a_part_without_which_a_tensor_cannot_be_made_is_named():
    ours = {"embed": torch.ones(3, 3), **{f"blocks.0.{name}": torch.ones(3, 3) for name in ("up", "q", "v")}}
    with pytest.raises(UsageError, match=r"missing: blocks\.0\.k"):
        to_theirs(ours, RULES)


def test_two_tensors_for_one_name_are_refused():
    with pytest.raises(UsageError, match="1 for one name: token"):
        to_theirs({"embed": torch.ones(1), "other": torch.ones(1)}, (*RULES, rename("token", "other")))


def test_a_tensor_of_ours_without_a_rule_is_named():
    with pytest.raises(ModelFileError, match=r"orphan \(ours\)"):
        to_ours({}, RULES, {"orphan": torch.Size([1])})
