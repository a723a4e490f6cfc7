"""Looking inside costs nothing when it is off and changes nothing when it is on, compiled too.

What is compiled is ``Stack.forward(x, ctx)``; ``model.prepare`` makes x and the context eagerly, outside.
"""

import ast
import inspect
import sys
import textwrap
import threading
from dataclasses import replace

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from orrery.families import load_family
from orrery.nn import block, residual, stack
from orrery.nn.attention import kernels, multihead
from orrery.nn.attention.kernels import KERNELS
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.cache.kinds import growing, static
from orrery.nn.cache.rows import RowCache
from orrery.nn.context import Execution
from orrery.nn.feedforward import gated

# Torch's own compiler warns: it looks at .grad of every input, and inductor imports deprecated parts of torch.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]

LAYERS = 4
CONFIG = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
IDS = torch.arange(10).reshape(2, 5)


class Recorder:
    """The smallest recorder: it keeps what its filter names, after the edit of that key."""

    def __init__(self, keep=lambda key: True, edit=None):
        self.keep, self.edit, self.seen = keep, edit or {}, {}

    def __call__(self, key, value):
        if key in self.edit:
            value = self.edit[key](value)
        if self.keep(key):
            if key in self.seen:
                raise KeyError(key)
            self.seen[key] = value
        return value


@pytest.fixture(autouse=True)
def fresh_compiler():
    # dynamo cannot trace what the run-time checks of types put around every function.
    hooks = [finder for finder in sys.meta_path if type(finder).__module__.startswith("jaxtyping")]
    assert not hooks, "compiled graphs hold no type checks: run these tests without --jaxtyping-packages"
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def model():
    made = load_family("llama").spec(CONFIG).build(0).eval()
    rng = torch.Generator().manual_seed(0)
    for parameter in made.parameters():
        parameter.data.normal_(0.0, 0.3, generator=rng)
    return made


def run(model, forward, ids=IDS, cache=UNCACHED, **execution):
    x, ctx = model.prepare(ids, cache=cache, execution=Execution(**execution))
    return forward(x, ctx)


class Nodes:
    """A backend that keeps the operations of every graph, in order."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, inputs):
        self.graphs.append([str(node.target) for node in graph.graph.nodes if node.op.startswith("call")])
        return graph.forward


# (a) off means absent


class _Strip(ast.NodeTransformer):
    """Replace every ``ctx.tap(self, name, value)`` and ``tap(name, value)`` by ``value``."""

    def visit_Call(self, node):
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return node.args[-1] if name == "tap" else node


def without_taps(function):
    tree = _Strip().visit(ast.parse(textwrap.dedent(inspect.getsource(function))))
    namespace = {}
    exec(compile(ast.fix_missing_locations(tree), "<stripped>", "exec"), function.__globals__, namespace)
    return namespace[function.__name__]


@pytest.mark.parametrize("kernel", KERNELS)
def test_taps_that_are_off_leave_nothing_in_the_graph(model, monkeypatch, kernel):
    tapped, stripped = Nodes(), Nodes()
    expected = run(model, torch.compile(model.stack, backend=tapped, fullgraph=True), kernel=KERNELS[kernel])
    torch._dynamo.reset()
    for owner in (
        block.Block, residual.Residual, stack.Stack, multihead.MultiHeadAttention, gated.GatedMLP
    ):  # fmt: skip
        monkeypatch.setattr(owner, "forward", without_taps(owner.forward))
    bare = without_taps(getattr(kernels, kernel))
    out_BLD = run(model, torch.compile(model.stack, backend=stripped, fullgraph=True), kernel=bare)
    assert len(tapped.graphs) == len(stripped.graphs) == 1
    assert tapped.graphs == stripped.graphs
    assert torch.equal(out_BLD, expected)


def test_a_model_that_is_looked_into_is_compiled_to_the_same_graph(model):
    """Looking inside between two compiled runs changes neither the graph nor a number, and compiles nothing again."""
    from orrery.inspection.thumbnails import Thumbnails
    from orrery.inspection.trace import trace

    before, after = Nodes(), Nodes()
    compiled = torch.compile(model.stack, backend=before, fullgraph=True)
    expected = run(model, compiled)
    seen = trace(model, IDS, reducers=[Thumbnails()], defer=True)
    assert seen.definitions
    assert torch.equal(run(model, compiled), expected)
    assert len(before.graphs) == 1
    torch._dynamo.reset()
    assert torch.equal(run(model, torch.compile(model.stack, backend=after, fullgraph=True)), expected)
    assert after.graphs == before.graphs


# (b), (f) on means the same numbers under the same keys


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("backend", "bound"), [("aot_eager", 0.0), pytest.param("inductor", 5e-6, marks=pytest.mark.slow)]
)
def test_a_compiled_recorder_sees_what_the_eager_one_sees(model, backend, bound, kernel):
    seen = []
    for forward in (model.stack, torch.compile(model.stack, backend=backend, fullgraph=True)):
        recorder = Recorder()
        with torch.no_grad():
            final = run(model, forward, taps=recorder, kernel=KERNELS[kernel])
        seen.append({**recorder.seen, "returned": final})
    eager, compiled = seen
    assert list(eager) == list(compiled)
    assert {"embedded", "blocks.0.attention.q", "blocks.3.feed_forward.hidden", "blocks.3.resid_post"} < set(eager)
    assert ("blocks.2.attention.pattern" in eager) == (kernel == "eager")
    for key in eager:
        a, b = (x[key].nan_to_num(neginf=0.0) for x in (compiled, eager))
        assert (a - b).abs().max() <= bound * b.abs().max().clamp(min=1), key


@pytest.mark.parametrize("compiled", [False, True])
def test_looking_changes_no_number(model, compiled):
    forward = torch.compile(model.stack, backend="aot_eager", fullgraph=True) if compiled else model.stack
    assert torch.equal(run(model, forward), run(model, forward, taps=Recorder()))


# (c) a recorder belongs to its call


@pytest.mark.parametrize("compiled", [False, True])
def test_two_threads_do_not_mix(model, compiled):
    forward = torch.compile(model.stack, backend="aot_eager", fullgraph=True) if compiled else model.stack
    inputs = [IDS, IDS + 20]
    with torch.no_grad():
        run(model, forward, taps=Recorder())
        expected = [run(model, model.stack, ids) for ids in inputs]
    start, faults = threading.Barrier(2), []

    def work(which):
        start.wait()
        for _ in range(10):
            recorder = Recorder()
            with torch.no_grad():
                run(model, forward, inputs[which], taps=recorder)
            if not torch.equal(recorder.seen["final"], expected[which]):
                faults.append(which)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


# (d) an edit is an intervention, and gradients flow through it


@pytest.mark.parametrize("backend", [None, "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_an_edit_changes_the_result_and_has_a_gradient(model, backend):
    forward = model.stack if backend is None else torch.compile(model.stack, backend=backend, fullgraph=True)
    strength = torch.tensor(0.5, requires_grad=True)
    edit = {"blocks.1.attention.pattern": lambda pattern: pattern * strength}
    recorder = Recorder(keep=lambda key: False, edit=edit)
    edited_BLD = run(model, forward, taps=recorder, kernel=kernels.eager)
    plain = run(model, model.stack, kernel=kernels.eager)
    assert (edited_BLD - plain).abs().max() > 1e-2
    (gradient,) = torch.autograd.grad(edited_BLD.pow(2).mean(), strength)
    step = 1e-2
    with torch.no_grad():
        nudged = [strength + step, strength - step]
        around = []
        for value in nudged:
            recorder = Recorder(edit={"blocks.1.attention.pattern": lambda pattern, value=value: pattern * value})
            around.append(run(model, model.stack, taps=recorder, kernel=kernels.eager).pow(2).mean())
    assert gradient.abs() > 1e-3
    torch.testing.assert_close(gradient, (around[0] - around[1]) / (2 * step), rtol=2e-2, atol=1e-3)


# (e) what is compiled once stays compiled


def test_layers_share_one_graph_when_taps_are_off(model):
    counter = CompileCounter()
    for each in model.stack.blocks:
        each.compile(backend=counter, fullgraph=True)
    run(model, model.stack)
    run(model, model.stack)
    assert counter.frame_count == 1


def test_recorded_calls_with_the_same_filter_share_one_graph(model):
    counter = CompileCounter()
    forward = torch.compile(model.stack, backend=counter, fullgraph=True)
    for shift in range(3):
        recorder = Recorder(keep=lambda key: key.endswith("resid_post"))
        run(model, forward, IDS + shift, taps=recorder)
        assert len(recorder.seen) == LAYERS
    assert counter.frame_count == 1


def test_decoding_with_a_static_cache_compiles_once(model):
    counter = CompileCounter()
    step = torch.compile(model.stack, backend=counter, fullgraph=True)
    ids = torch.arange(18).reshape(2, 9)
    with torch.no_grad():
        expected = model.hidden(ids)
        cache = static(2, 12)
        run(model, model.stack, ids[:, :3], cache=cache)
        for t in range(3, 9):
            stepped_BLD = run(model, step, ids[:, t : t + 1], cache=cache)
            torch.testing.assert_close(stepped_BLD[:, 0], expected[:, t], rtol=1e-5, atol=1e-5)
    assert counter.frame_count == 1
    with torch.no_grad():
        run(model, step, ids[:, :1], cache=filled(model, ids[:, :3]))
    assert counter.frame_count == 1, "a fresh cache of the same shape must not compile again"


def filled(model, ids) -> RowCache:
    cache = static(2, 12)
    run(model, model.stack, ids, cache=cache)
    return cache


@pytest.mark.slow
def test_decoding_with_a_growing_cache_compiles_a_few_times(model):
    counter = CompileCounter()
    step = torch.compile(model.stack, backend=counter, fullgraph=True)
    cache = growing(2, 40)
    with torch.no_grad():
        for _ in range(20):
            run(model, step, IDS[:, :1], cache=cache)
    assert counter.frame_count <= 3


# one block object at several depths


def test_a_shared_block_records_every_depth(model):
    first = model.stack.blocks[0]
    model.stack.blocks = torch.nn.ModuleList([first] * LAYERS)
    keys = []
    for forward in (model.stack, torch.compile(model.stack, backend="aot_eager", fullgraph=True)):
        recorder = Recorder()
        final = run(model, forward, taps=recorder)
        keys.append(list(recorder.seen))
        patterns = [recorder.seen[f"blocks.{depth}.attention.mixed"] for depth in range(LAYERS)]
        assert not torch.equal(patterns[0], patterns[1])
    assert keys[0] == keys[1]
    cached = [run(model, model.stack, IDS[:, t : t + 1], cache=cache) for cache in [growing(2, 8)] for t in range(5)]
    torch.testing.assert_close(torch.cat(cached, 1), final, rtol=1e-4, atol=1e-4)


def test_a_recorder_inside_a_block_is_told_twice_and_refuses(model):
    x, ctx = model.prepare(IDS, execution=Execution(taps=Recorder()))
    twice = replace(ctx, taps=Recorder())
    model.stack(x, twice)
    with pytest.raises(KeyError, match="resid_pre"):
        model.stack(x, twice)
