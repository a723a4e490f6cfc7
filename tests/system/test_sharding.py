"""Processes that share the parameters of a model (FSDP2), or its layers, learn what one process learns.

Objectives call the model, and never one of its parts around it: only then do the hooks run that gather parameters.
"""

from pathlib import Path

import pytest

from orrery.families import names
from orrery.objectives import OBJECTIVES
from processes_together import told

HERE = Path(__file__).parents[1]
FEW = "causal|seq2seq|masked bert|captioning|replaced|ppo|distill|few experts|lstm|more gpt2|more t5|optimizer"
"""Runs that differ most: kinds of models, what is written, an own model beside, optimizers; the program has more."""
KINDS = "llama|gpt2|bert|t5|mixtral|vit|gpt_oss|bloom|qwen3|apertus|albert"
"""Decoders, an encoder, an encoder-decoder, experts, pictures, biases of heads, shared blocks, learned activations."""


def test_every_objective_learns_the_same_under_fsdp() -> None:
    errors = told(str(HERE / "sharded.py"))
    assert {case.partition(" ")[0] for case in errors} >= {"causal", "seq2seq", "verdicts"}
    assert set(OBJECTIVES.names()) <= {case.partition(" ")[0] for case in errors}
    assert max(errors.values()) <= 1e-6, errors


def test_runs_that_share_their_weights_leave_what_one_process_leaves(tmp_path: Path) -> None:
    errors = told(str(HERE / "sharded_runs.py"), str(tmp_path), "fsdp=2", f"only={FEW}")
    assert len(errors) > 9, errors
    assert max(errors.values()) <= 1e-9, errors


def test_models_of_every_kind_are_computed_together() -> None:
    errors = told(str(HERE / "parted.py"), f"only={KINDS}", "faults=yes")
    wrong = {name: far for name, far in errors.items() if name.startswith("wrong")}
    assert len(wrong) == 6
    assert min(wrong.values()) > 1e-3, wrong
    right = {name: far for name, far in errors.items() if name not in wrong}
    assert {name.partition(",")[0] for name in right} == set(KINDS.split("|")), right
    assert max(right.values()) <= 1e-9, right


def test_runs_that_compute_layers_together_leave_what_one_process_leaves(tmp_path: Path) -> None:
    errors = told(
        str(HERE / "sharded_runs.py"), str(tmp_path), "tensor=2", "only=causal llama|ppo|more (gpt2|t5|mixtral)"
    )
    assert [name for name in errors if "refused" in name] == [
        "ppo llama is refused: parallel.tensor 2: an objective on the model's own answers"
    ]
    assert max(errors.values()) <= 1e-9, errors
    assert {"causal llama: bytes of files", "more t5", "more mixtral"} <= errors.keys()


@pytest.mark.parametrize(
    ("layout", "families"),
    [
        ("context=2", "gpt2|gemma3_text|bart|mamba"),
        ("expert=2", "mixtral|llama"),
        ("pipeline=2 recompute=full", "gpt2|nplm"),
        ("pipeline=2 interleave=2", "mixtral"),
    ],
)
def test_rows_experts_and_stages_are_shared(layout: str, families: str) -> None:
    errors = told(str(HERE / "shared_work.py"), *layout.split(), f"only={families}")
    assert max(errors.values()) <= 1e-9, errors
    found = {name.partition(",")[0].split()[0] for name in errors}
    assert found == set(families.split("|")) - {"bart"}  # it reads a source
    refused = {name.split()[0] for name in errors if " is refused: parallel." in name}
    assert refused == found & ({"mamba"} if "context" in layout else {"llama"} if "expert" in layout else {"nplm"})


@pytest.mark.parametrize(
    ("layout", "cases"),
    [
        ("context=2", "causal llama|more mamba|optimizer muon"),
        ("expert=2", "mixtral|more gpt2"),
        ("pipeline=2", "causal llama|more t5|optimizer muon"),
    ],
)
def test_runs_that_share_other_work_leave_what_one_process_leaves(layout: str, cases: str, tmp_path: Path) -> None:
    errors = told(str(HERE / "sharded_runs.py"), str(tmp_path), layout, f"only={cases}")
    assert max(errors.values()) <= 1e-9, errors
    assert len([name for name in errors if "refused" not in name]) >= 2, errors
    assert any(" is refused: parallel." in name for name in errors), errors


def test_parted_layers_share_what_is_left_of_their_weights(tmp_path: Path) -> None:
    words = (str(tmp_path), "fsdp=2", "tensor=2", "only=optimizer sgd")
    assert max(told(str(HERE / "sharded_runs.py"), *words, world=4).values()) <= 1e-9


@pytest.mark.long
@pytest.mark.parametrize("layout", ["context=2", "expert=2", "pipeline=2"])
def test_every_objective_and_kind_shares_other_work(layout: str, tmp_path: Path) -> None:
    errors = told(str(HERE / "sharded_runs.py"), str(tmp_path), layout, "only=causal|sft|prefix|more|optimizer")
    assert max(errors.values()) <= 1e-9, errors


@pytest.mark.long
@pytest.mark.parametrize(
    "layout", ["context=2", "expert=2", "pipeline=2 recompute=selective", "pipeline=2 recompute=full"]
)
def test_every_decoder_shares_other_work_or_is_refused_by_name(layout: str) -> None:
    errors = told(str(HERE / "shared_work.py"), *layout.split(), "kinds=packed", patience=900)
    assert max(errors.values()) <= 1e-9, errors
    equal = {name.partition(",")[0] for name in errors if name.endswith("packed")}
    # Recomputation of attention is refused where there is none.
    least = {"context=2": 55, "expert=2": 15, "pipeline=2 recompute=selective": 59}
    assert len(equal) >= least.get(layout, 73), sorted(errors)


@pytest.mark.long
def test_every_family_is_computed_together_or_refused_by_name() -> None:
    errors = told(str(HERE / "parted.py"), "tensor=2")
    refused = {name.split()[0] for name in errors if " is refused: parallel.tensor 2" in name}
    equal = {name.partition(",")[0] for name in errors if name.endswith("tokens")}
    assert refused | equal == set(names())
    assert not refused & equal
    assert len(equal) >= 71, sorted(refused)
    assert max(errors.values()) <= 1e-9, errors


@pytest.mark.long
@pytest.mark.parametrize("layout", ["data=2 tensor=2", "fsdp=2 tensor=2", "tensor=4", "tensor=2 sequence=0"])
def test_every_layout_of_parted_layers_learns_and_saves_the_same(layout: str, tmp_path: Path) -> None:
    degrees = layout.split()
    world = 2 if "sequence=0" in degrees else 4
    cases = "only=causal llama|more (gpt2|t5|mixtral)|muon"
    errors = told(str(HERE / "sharded_runs.py"), str(tmp_path), *degrees, cases, world=world)
    assert max(errors.values()) <= 1e-9, errors
    assert len([name for name in errors if "refused" not in name]) >= (2 if layout == "tensor=4" else 7), errors


@pytest.mark.long
@pytest.mark.parametrize("layout", ["data=2", "fsdp=4", "data=2 fsdp=2"])
def test_every_layout_learns_and_saves_the_same(layout: str, tmp_path: Path) -> None:
    degrees = layout.split()
    world = 4 if layout != "data=2" else 2
    errors = told(str(HERE / "sharded_runs.py"), str(tmp_path), *degrees, "only=causal llama|ppo|mixtral", world=world)
    assert {"causal llama: bytes of files", "ppo llama: bytes of files"} <= errors.keys(), errors
    assert max(errors.values()) <= 1e-9, errors


@pytest.mark.long
@pytest.mark.parametrize(
    "layout",
    [
        *("context=4", "context=2 fsdp=2", "context=2 tensor=2", "context=2 expert=2", "data=2 context=2"),
        *("data=2 expert=2", "fsdp=2 expert=2", "fsdp=2 expert=4", "data=2 pipeline=2"),
    ],
)
def test_every_layout_of_other_work_learns_and_saves_the_same(layout: str, tmp_path: Path) -> None:
    degrees = layout.split()
    errors = told(str(HERE / "sharded_runs.py"), str(tmp_path), *degrees, "only=causal llama|mixtral", world=4)
    assert max(errors.values()) <= 1e-9, errors
    assert len([name for name in errors if "refused" not in name]) >= (2 if "expert" in layout else 6), errors
