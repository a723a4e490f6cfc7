"""Blocks that are compiled for a training compute and learn what they do uncompiled, are few graphs, or are refused."""

import copy
import re
import sys
from pathlib import Path

import pytest
import torch
from torch._dynamo.backends.debugging import aot_eager
from torch._dynamo.testing import CompileCounterWithBackend
from torch._dynamo.utils import counters
from torch.library import opcheck

from orrery.checkpoints.manifest import file_sha256
from orrery.errors import MachineError, UsageError
from orrery.families import names
from orrery.kernels import bfloat16_linear
from orrery.kernels.bfloat16_linear import take_fast_products
from orrery.kernels.processor import Processor
from orrery.nn.attention.stored_pattern import stored_pattern
from orrery.nn.joined_linear import join_layers
from orrery.nn.residual import Dropout
from orrery.recipes.parallel import ParallelSettings, uncompiled
from orrery.training import compiled_blocks, compiled_graphs
from orrery.training.compiled_blocks import CompiledForward, compile_blocks
from orrery.training.compiled_graphs import gelu_by_sigmoid, take_fast_gelus
from orrery.training.compiling import compiled
from orrery.training.precision import Precision
from parted import built, learned, without_dropout
from processes_together import told
from sharded_runs import apart, left, opened, plain
from training_toy import toy_model, toy_recipe

# Torch's own compiler imports deprecated parts of torch, and makes one of every function with a backward of its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]
WITHOUT_INDUCTOR = {"backend": "aot_eager"}
"""The graphs forward and backward, computed by torch's own kernels: what compiling may get wrong, without g++."""
INDUCTOR = compiled_blocks.COMPILER
CONSTANT = {"kind": "constant"}
LENGTH = 7


@pytest.fixture(autouse=True)
def fresh_compiler(monkeypatch):
    hooks = [finder for finder in sys.meta_path if type(finder).__module__.startswith("jaxtyping")]
    assert not hooks, "compiled graphs hold no type checks: run these tests without --jaxtyping-packages"
    torch._dynamo.reset()
    counters.clear()
    monkeypatch.setattr(compiled_blocks, "COMPILER", WITHOUT_INDUCTOR)
    yield
    torch._dynamo.reset()


def pair(family):
    """Return a small model in training, its copy with compiled blocks, and a batch."""
    model, batch = built(family)
    without_dropout(model.train())
    for module in model.modules():
        if isinstance(getattr(module, "dropout", None), float):  # the other kinds of attention
            module.dropout = 0.0
    twin = copy.deepcopy(model)
    compile_blocks(twin, "cpu")
    return model, twin, batch


def padded(batch):
    real = torch.arange(LENGTH) < torch.tensor([7, 4, 5, 1])[:, None]
    return {**batch, "real": real}


def packed(batch):
    documents = (torch.arange(LENGTH) >= torch.tensor([7, 4, 2, 3])[:, None]).long()
    starts = torch.where(documents == 1, documents.argmax(1)[:, None], 0)
    return {**batch, "documents": documents, "positions": torch.arange(LENGTH) - starts}


def furthest(model, twin, batch, dtype=torch.float64):
    """Return the largest difference of answers and gradients, by the largest number of each or 1."""
    expected, found = (learned(each.to(dtype), cast(batch, dtype)) for each in (model, twin))
    assert expected.keys() == found.keys()
    assert len(found) > 5
    for each in (model, twin):
        each.zero_grad()
    return max(float((expected[n] - found[n]).abs().max() / expected[n].abs().max().clamp(min=1)) for n in found)


def cast(batch, dtype):
    return {name: each.to(dtype) if each.is_floating_point() else each for name, each in batch.items()}


@pytest.mark.parametrize("family", ["llama", "bert", "t5"])
def test_compiled_blocks_compute_and_learn_the_same(family):
    model, twin, batch = pair(family)
    kinds = [dict, padded, packed] if family == "llama" else [dict, padded]
    assert max(furthest(model, twin, kind(batch)) for kind in kinds) <= 1e-12
    assert counters["stats"]["unique_graphs"] >= 1


def test_layers_that_are_joined_are_compiled_so():
    model, batch = built("llama")
    twin = copy.deepcopy(without_dropout(model.train()) or model)
    join_layers(twin, "cpu")
    compile_blocks(twin, "cpu")
    assert furthest(model, twin, batch) <= 1e-12
    assert counters["stats"]["unique_graphs"] == 1


@pytest.fixture
def rewritten(monkeypatch):
    """Have graphs compiled with the forms of GELU for processors, without inductor; list their functions."""
    functions = []

    def backend(graph, inputs):
        take_fast_gelus(graph)
        functions.extend(node.target for node in graph.graph.nodes if node.op == "call_function")
        return aot_eager(graph, inputs)

    monkeypatch.setattr(compiled_blocks, "COMPILER", {"backend": backend})
    return functions


@pytest.mark.parametrize(("family", "form"), [("gpt2", gelu_by_sigmoid), ("bert", torch.ops.orrery.gelu.default)])
def test_gelu_is_computed_in_the_form_that_is_fast(family, form, rewritten):
    model, twin, batch = pair(family)
    assert furthest(model, twin, batch) <= 1e-12
    assert form in rewritten
    assert torch.nn.functional.gelu not in rewritten


def test_a_wrong_form_of_gelu_is_seen(rewritten, monkeypatch):
    monkeypatch.setattr(compiled_graphs, "gelu_by_sigmoid", lambda x: x * torch.sigmoid(1.702 * x))
    assert furthest(*pair("gpt2")) > 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gelu_by_sigmoid_is_gelu_by_tanh_up_to_rounding(dtype):
    x = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    exact = torch.nn.functional.gelu(x, approximate="tanh")
    error = (gelu_by_sigmoid(x.to(dtype)).double() - exact).abs()
    assert bool((error <= (1e-6 if dtype == torch.float32 else 2**-6) * x.abs().clamp(min=1)).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_gelu_is_one_operation_of_a_graph_whatever_lies_in_memory(dtype):
    torch.manual_seed(0)
    x, turned = torch.randn(4, 6, 8).to(dtype), torch.randn(8, 6, 4).to(dtype).permute(2, 1, 0)
    spread = torch.randn(1, 1, 8).to(dtype).expand(4, 6, 8)
    for one in (x, turned, spread):
        opcheck(torch.ops.orrery.gelu.default, (one.detach().clone().requires_grad_(),))
        opcheck(torch.ops.orrery.gelu.default, (one,))
        for other in (x, turned, spread):
            opcheck(torch.ops.orrery.gelu_backward.default, (other, one))
            expected = torch.ops.aten.gelu_backward(other, one)
            # In another order of memory other loops of torch compute it, with another last bit.
            assert torch.allclose(torch.ops.orrery.gelu_backward(other, one), expected, rtol=1e-2, atol=1e-6)


def test_fast_products_of_bfloat16_are_compiled(monkeypatch):
    monkeypatch.setattr(bfloat16_linear, "LEAST", 0)
    model, batch = built("gpt2")
    without_dropout(model.train())
    join_layers(model, "cpu")
    take_fast_products(model, "cpu", Processor("GenuineIntel", frozenset({"amx_bf16"})))
    twin = copy.deepcopy(model)
    compile_blocks(twin, "cpu")
    with Precision("bfloat16", "autocast", "cpu", 1).context():
        assert furthest(model, twin, batch, torch.float32) <= 1e-6
    assert counters["stats"]["unique_graphs"] == 1


def refusal(model, batch):
    """Return why the blocks of a model are not compiled, or nothing."""
    try:
        compile_blocks(model, "cpu")
        learned(model, padded(batch) if "ids" in batch else batch)
    except UsageError as error:
        return error.message
    return None


@pytest.mark.long
@pytest.mark.parametrize("family", names())
def test_every_family_is_compiled_or_refused_by_name(family):
    refused = refusal(*built(family))
    if refused is not None:
        assert re.match(
            r"parallel\.compile: (\S+ (\(\w+\) is not|cannot be) compiled: |the model has no blocks)", refused
        )
        return
    model, twin, batch = pair(family)
    kinds = [dict, padded] if "ids" in batch else [dict]
    assert max(furthest(model, twin, kind(batch)) for kind in kinds) <= 1e-12
    assert counters["stats"]["unique_graphs"] >= 1


def test_the_kernel_of_trainings_on_processors_is_compiled_too():
    model, twin, batch = pair("llama")
    model.kernel = twin.kernel = stored_pattern
    assert max(furthest(model, twin, kind(batch)) for kind in (dict, padded)) <= 1e-12


def test_a_block_that_is_compiled_wrongly_is_seen(monkeypatch):
    model, twin, batch = pair("llama")
    monkeypatch.setattr(compiled_blocks, "COMPILER", {"backend": lambda graph, inputs: wrong(graph)})
    twin = copy.deepcopy(model)
    compile_blocks(twin, "cpu")
    assert furthest(model, twin, batch) > 1e-3


def wrong(graph):
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is torch.nn.functional.silu:
            node.target = torch.nn.functional.gelu
    graph.recompile()
    return graph.forward


def test_rows_of_many_lengths_are_a_few_graphs(monkeypatch):
    counter = CompileCounterWithBackend("eager")
    monkeypatch.setattr(compiled_blocks, "COMPILER", {"backend": counter})
    _, twin, batch = pair("llama")
    for rows, length in [(4, 7), (4, 5), (4, 3), (3, 6), (2, 7), (4, 2), (1, 4), (3, 3), (2, 2), (1, 6), (4, 4)]:
        learned(twin, {name: each[:rows, :length] for name, each in padded(batch).items()})
    assert counter.frame_count <= 5


def test_what_asks_for_no_gradient_takes_the_block_as_it_stands():
    _, twin, batch = pair("llama")
    with torch.no_grad():
        twin(batch)
        twin.start(batch["ids"], 9)
    assert not counters["stats"]["unique_graphs"]
    learned(twin, batch)
    assert counters["stats"]["unique_graphs"] == 1
    assert not any(isinstance(module.forward, CompiledForward) for module in copy.deepcopy(twin).modules())


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_run_learns_the_same_and_goes_on_to_the_same_bytes(recompute, tmp_path, monkeypatch):
    """With micro-batches, what is computed again, and dropout between the layers, whose bits stay the same."""
    monkeypatch.setattr("sharded_runs.recipe_of", recipe_of)
    torch.set_default_dtype(torch.float64)
    try:
        case = ("causal", *plain("llama", "causal"), {})
        for residual in case[2].stack.blocks:
            for child in residual.children():
                child.dropout = Dropout(0.1)
        runs = {"eager": (False, [4]), "compiled": (True, [4]), "resumed": (True, [2, 4])}
        for name, (wanted, steps) in runs.items():
            (tmp_path / name).mkdir()
            for until in steps:
                opened(case, tmp_path / name, None, until, compile=wanted, recompute=recompute).run()
    finally:
        torch.set_default_dtype(torch.float32)
    assert apart(left(tmp_path / "eager", steps=4), left(tmp_path / "compiled", steps=4)) <= 1e-12
    assert digests(tmp_path / "compiled") == digests(tmp_path / "resumed")
    assert counters["stats"]["unique_graphs"] >= 1


def recipe_of(case, steps, **settings):
    """Return the settings of a run of a llama, which are those of all runs but for what is compiled."""
    more = {"training__optimizer": {"rate": 0.01}, "training__schedule": CONSTANT}
    return toy_recipe(
        **more, training__steps=steps, training__micro_batch=2, checkpoints__every=2, evaluation__every=2,
        logging__every=1, parallel=settings,
    )  # fmt: skip


def digests(folder):
    return [file_sha256(path) for path in sorted((folder / "checkpoints" / "step-000004").glob("*.safetensors"))]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["plain", "onednn"])
def test_what_inductor_makes_learns_the_same_and_is_kept(path, tmp_path, monkeypatch):
    if path == "onednn" and not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled_blocks, "COMPILER", INDUCTOR)
    model, twin, batch = pair("llama")
    for each in (model, twin):
        each.float()
    with Precision("float32", path, "cpu", 1).context():
        assert furthest(model, twin, batch, torch.float32) <= 2e-6
    torch._dynamo.reset()
    counters.clear()
    compile_blocks(model, "cpu")
    learned(model, batch)
    kept = counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
    assert kept
    assert not counters["inductor"]["fxgraph_cache_miss"]


@pytest.mark.slow
def test_processes_that_share_weights_compile_them(tmp_path):
    words = (str(tmp_path), "fsdp=2", "compile=1", "only=more (gpt2|mixtral)|optimizer adam")
    errors = told(str(Path(__file__).parents[1] / "sharded_runs.py"), *words)
    assert max(errors.values()) <= 1e-9, errors
    assert {"more gpt2", "optimizer adam"} < errors.keys()
    assert any("MoE) is not compiled" in name for name in errors), errors


@pytest.mark.parametrize(("family", "part"), [("mixtral", "MoE"), ("mamba", "Mamba"), ("jamba", "Mamba")])
def test_parts_that_would_be_compiled_again_and_again_are_refused_by_name(family, part):
    model, _ = built(family)
    with pytest.raises(UsageError, match=rf"parallel.compile: stack\.blocks\.0\.\w+\.branch \({part}\)") as refused:
        compile_blocks(model, "cpu")
    assert refused.value.hint == "leave parallel.compile out"


def test_a_model_without_blocks_is_refused():
    with pytest.raises(UsageError, match="the model has no blocks"):
        compile_blocks(toy_model(), "cpu")


def test_a_block_that_torch_cannot_compile_is_named(monkeypatch):
    def fail(graph, inputs):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(compiled_blocks, "COMPILER", {"backend": fail})
    _, twin, batch = pair("llama")
    with pytest.raises(UsageError, match=r"parallel\.compile: stack\.blocks\.0 cannot be compiled: .*"):
        learned(twin, batch)


def test_a_machine_without_a_compiler_is_refused(monkeypatch, tmp_path):
    model, _ = built("llama")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"no C\+\+ compiler \(g\+\+\)") as refused:
        compile_blocks(model, "cpu")
    assert "python3-dev" in refused.value.hint
    monkeypatch.undo()
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"include": str(tmp_path)})
    with pytest.raises(MachineError, match=r"no header of Python \("):
        compile_blocks(model, "cpu")


@pytest.mark.parametrize(
    ("settings", "told_of"),
    [
        ({"tensor": 2}, "parallel.tensor 2"),
        ({"pipeline": 2}, "parallel.pipeline 2"),
        ({"context": 2}, "parallel.context 2"),
        ({"expert": 2}, "parallel.expert 2"),
        ({"recompute": "selective"}, "parallel.recompute selective: take full, or none"),
    ],
)
def test_what_does_not_go_with_compiled_blocks_is_refused_before_anything_is_read(settings, told_of):
    with pytest.raises(UsageError, match=re.escape(f"parallel.compile with {told_of}")):
        toy_recipe(parallel={"compile": True, **settings})


def test_a_model_that_learns_from_its_own_answers_is_not_compiled():
    assert uncompiled(ParallelSettings(), judged=True).startswith("rewards: ")
    assert uncompiled(ParallelSettings(fsdp=2, data=2, recompute="full"), judged=False) is None


def test_nothing_is_compiled_where_nobody_asks():
    model, batch = built("llama")
    assert compiled(model, wanted=False, device="cpu") == ()
    learned(model, batch)
    assert not counters["stats"]["unique_graphs"]
