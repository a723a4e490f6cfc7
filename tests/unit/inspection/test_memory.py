"""The memory of a trace: known before it runs, refused where there is none, bounded by one layer on the disk."""

import re

import pytest
import torch

from orrery.checkpoints.tensors import TensorFile
from orrery.errors import MachineError, UsageError
from orrery.families import names
from orrery.inspection import memory
from orrery.inspection.kept_on_disk import KeptOnDisk
from orrery.inspection.memory import free_bytes, trace_bytes
from orrery.inspection.recorder import Recorder
from orrery.inspection.trace import trace
from orrery.nn.attention.kernels import sdpa
from tiny_models import inputs_for, smallest

PATTERNS = ("*.pattern", "blocks.0.*", "*resid*", "logits")


@pytest.mark.parametrize("family", names())
def test_the_bytes_are_those_that_are_kept(family):
    model = smallest(family, torch.float32)
    inputs = inputs_for(model, rows=2, length=7, source=9)
    traced = trace(model, *inputs)
    cost = trace_bytes(model, inputs[-1].shape[1], source_length=inputs[0].shape[1], rows=2)
    assert dict(cost.bytes_of) == {key: traced[key].nbytes for key in traced}
    assert cost.total == sum(traced[key].nbytes for key in traced)
    kept = [pattern for pattern in PATTERNS if any(cost.by_pattern([pattern]).values())]
    some = trace_bytes(model, inputs[-1].shape[1], kept, source_length=inputs[0].shape[1], rows=2)
    assert dict(some.bytes_of) == {key: value.nbytes for key, value in trace(model, *inputs, keep=kept).values.items()}
    for pattern, size in cost.by_pattern(kept).items():
        expression = re.compile(pattern.replace(".", r"\.").replace("*", ".*"))
        assert size == sum(traced[key].nbytes for key in traced if expression.fullmatch(key))


def test_a_long_trace_is_known_from_a_short_one():
    model = smallest("gpt2", torch.float32, seed=1)
    cost = trace_bytes(model, 8192, ["*.pattern"], rows=3)
    assert cost.bytes_of["blocks.1.attention.pattern"] == 3 * 3 * 8192 * 8192 * 4
    assert cost.largest_layer * 2 == cost.total


def test_a_source_needs_a_length():
    with pytest.raises(UsageError, match="nothing says how long"):
        trace_bytes(smallest("t5"), 5)
    with pytest.raises(UsageError, match="nothing is called 'x'"):
        trace_bytes(smallest("gpt2"), 5, ["x"])


def test_what_does_not_fit_is_refused_before_it_runs(monkeypatch):
    model, ran = smallest("gpt2", torch.float32), []
    ids = torch.zeros(1, 30, dtype=torch.long)
    monkeypatch.setattr(memory, "SMALL", 100)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 100_000)
    logits = model.logits
    monkeypatch.setattr(
        model, "logits", lambda *given, **call: (ran.append(given[0].shape[1]), logits(*given, **call))[1]
    )
    with pytest.raises(MachineError, match="would keep 0 MiB at once, and 0 MiB of memory are free") as error:
        trace(model, ids)
    assert max(ran) <= 3
    assert re.search(r"keep=\[\.\.\.\]; \S+ alone takes .* or stream them to the disk", error.value.hint)
    assert trace(model, ids, keep=["final"]).logits.shape == (1, 30, 61)
    monkeypatch.setattr(memory, "free_bytes", lambda device: None)
    assert len(trace(model, ids).values) > 20


def test_the_free_memory_is_a_number_here():
    free = free_bytes(torch.device("cpu"))
    assert free is None or free > 2**20


@pytest.mark.parametrize("family", ["gpt2", "t5", "rnnsearch", "bert", "mixtral"])
def test_a_folder_holds_what_memory_would(family, tmp_path):
    model = smallest(family, torch.float32)
    inputs = inputs_for(model)
    plain, traced = trace(model, *inputs), trace(model, *inputs, folder=tmp_path / "kept")
    assert list(traced) == list(plain)
    for key in plain:
        assert torch.equal(traced[key], plain[key]), key
    assert [(check.name, check.value) for check in traced.checks] == [(c.name, c.value) for c in plain.checks]
    assert traced.lens().check.passed
    assert torch.equal(traced.parts(None).value_NBPD, plain.parts(None).value_NBPD)
    by_file = [set(TensorFile(path)) for path in sorted((tmp_path / "kept").iterdir())]
    assert set().union(*by_file) == set(plain)
    assert all(
        len({key.split("blocks.")[-1].split(".")[0] for key in keys if "blocks." in key}) <= 1 for keys in by_file
    )


def test_one_layer_at_most_is_in_memory(tmp_path):
    model = smallest("gpt2", torch.float32)
    traced = trace(model, *inputs_for(model, length=20), folder=tmp_path)
    cost = trace_bytes(model, 20, rows=2)
    layer = sum(size for key, size in cost.bytes_of.items() if key.startswith("blocks.0."))
    assert traced.values.most_held == layer == cost.largest_layer < cost.total / 2
    assert traced.values._held == {}


def test_the_measure_sees_a_store_that_holds_on(tmp_path, monkeypatch):
    monkeypatch.setattr(KeptOnDisk, "write", lambda self: None)
    model = smallest("gpt2", torch.float32)
    cost = trace_bytes(model, 20, rows=2)
    assert trace(model, *inputs_for(model, length=20), folder=tmp_path).values.most_held == cost.total


def test_a_pattern_in_pieces_is_whole_on_the_disk(tmp_path, monkeypatch):
    from orrery.inspection import definition

    monkeypatch.setattr(definition, "LARGEST", 60)
    model = smallest("gpt2", torch.float32)
    inputs = inputs_for(model)
    traced, plain = trace(model, *inputs, folder=tmp_path), trace(model, *inputs)
    assert torch.equal(traced["blocks.1.attention.pattern"], plain["blocks.1.attention.pattern"])


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        trace(smallest("gpt2"), torch.zeros(1, 3, dtype=torch.long), folder=tmp_path)
    assert (tmp_path / "a.txt").read_text() == "mine"
    with pytest.raises(MachineError, match=r"a\.txt"):
        KeptOnDisk(tmp_path / "a.txt")


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    from orrery.inspection import kept_on_disk

    def full(path, tensors):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_on_disk, "write_tensors", full)
    with pytest.raises(MachineError, match="No space left on device") as error:
        trace(smallest("gpt2"), torch.zeros(1, 3, dtype=torch.long), folder=tmp_path)
    assert "keep fewer values" in error.value.hint


def test_kept_on_disk_is_a_mapping(tmp_path):
    kept = KeptOnDisk(tmp_path / "new")
    recorder = Recorder(values=kept)
    recorder("blocks.0.a", torch.ones(2))
    recorder("blocks.1.a", torch.zeros(2))
    assert ("blocks.0.a" in kept, "b" in kept, len(kept)) == (True, False, 2)
    assert torch.equal(kept["blocks.0.a"], torch.ones(2))
    with pytest.raises(KeyError):
        kept["b"]
    with pytest.raises(UsageError, match="stays"):
        del kept["blocks.0.a"]


@pytest.mark.parametrize(("family", "shared"), [("t5", 2), ("bloom", 1), ("llama", 0)])
def test_a_bias_of_each_pair_is_part_of_what_a_pass_needs(family, shared):
    """What is added to the scores is made whole, once for all blocks of a stack, and once more with the mask."""
    model, length = smallest(family), 60
    inputs = inputs_for(model, rows=1, length=length, source=length)
    seen = {}

    def noting(q_BHLC, kv, operands):
        if operands.bias_BHLS is not None:
            seen[operands.bias_BHLS.data_ptr()] = operands.bias_BHLS
        return sdpa(q_BHLC, kv, operands)

    with torch.no_grad():
        model.logits(*inputs, kernel=noting)
    sizes = [bias.nbytes for bias in seen.values()]
    assert len(sizes) == shared
    cost = trace_bytes(model, length, source_length=length)
    assert memory._bias_bytes(model, cost) == sum(sizes) + max(sizes, default=0)


def test_a_model_that_is_changed_is_measured_again():
    model = smallest("gpt2", torch.float32)
    before = trace_bytes(model, 5).bytes_of["logits"]
    assert trace_bytes(model, 10).bytes_of["logits"] == 2 * before
    old = model.head.vocabulary
    model.head.vocabulary = torch.nn.Linear(old.in_features, 2 * old.out_features, bias=False)
    assert trace_bytes(model, 5).bytes_of["logits"] == 2 * before
    model.double()
    assert trace_bytes(model, 5).bytes_of["logits"] == 4 * before
