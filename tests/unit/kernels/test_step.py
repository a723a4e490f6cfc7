import errno
import fcntl
import gc
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import replace
from pickle import UnpicklingError

import numpy as np
import pytest
import torch
from torch import nn

from cover import kinds, specs
from gguf_files import random_blocks
from orrery.checkpoints.gguf_blocks import BY_NAME, unpacked
from orrery.errors import DataError, MachineError, UsageError
from orrery.families import names
from orrery.generation.compiled_step import CompiledStep, stepping, why_not
from orrery.generation.engine import Engine
from orrery.generation.generate import generate
from orrery.generation.paged import PagedModel
from orrery.generation.requests import Request
from orrery.generation.row import Limits
from orrery.generation.samplers import GREEDY, sampler
from orrery.kernels.readiness import READY, machine_code_folder
from orrery.kernels.step import build as building
from orrery.kernels.step import instructions as code
from orrery.kernels.step import program
from orrery.kernels.step.build import LOCK
from orrery.kernels.step.codes import BLOCKS
from orrery.kernels.step.loading import compiled_run
from orrery.kernels.step.run import run
from orrery.laws.evidence import FLOAT32, deviation
from orrery.laws.models import tiny
from orrery.laws.step import in_a_batch, through_a_session
from orrery.models.decoder import Decoder
from orrery.models.meta_device import build_on_meta
from orrery.nn.attention.differential import DifferentialAttention
from orrery.nn.attention.latent import LatentAttention
from orrery.nn.block import Block
from orrery.nn.cache.pages import PagePool
from orrery.nn.feedforward.moe import MoE
from orrery.nn.masks import RecurrentPast
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.tempered import TemperedRotary
from orrery.nn.residual import Normed, Residual, Scale, Sum
from orrery.recipes.config import TrainingSettings
from orrery.training.optimizers import build_optimizer
from orrery.tuning._linear import BlockEmbedding
from orrery.tuning.blocks import BlockLinear, StoredBlocks, store_table
from orrery.tuning.lora import LoRA
from orrery.tuning.quantise import Quantise
from tiny_models import TOKENIZER, randomised, smallest
from tiny_models import tiny as small

DECODERS = [name for name, spec in specs().items() if isinstance(spec, Decoder.Spec)]
PARTS = {
    TemperedRotary.Spec.kind: "TemperedRotary",
    RecurrentPast.kind: "RecurrentPast",
    DifferentialAttention.Spec.kind: "DifferentialAttention",
    LatentAttention.Spec.kind: "LatentAttention",
    MoE.Spec.kind: "MoE",
}
"""Kinds of bricks that no step is written for, the first one met before the others."""
REFUSED = {
    "apertus": "the activation",  # one that learns
    **{
        name: next(part for kind, part in PARTS.items() if kind in kinds()[name])
        for name in DECODERS
        if PARTS.keys() & kinds()[name]
    },
}
RUNNABLE = [name for name in DECODERS if name not in REFUSED]


def test_every_decoder_is_compiled_or_refused_by_the_name_of_its_part():
    assert [name for name in names() if isinstance(tiny(name, torch.float32), Decoder)] == DECODERS
    assert [name for name in DECODERS if why_not(tiny(name, torch.float32)) is None] == RUNNABLE
    for name, part in REFUSED.items():
        assert part in why_not(tiny(name, torch.float32))


@pytest.mark.parametrize("family", RUNNABLE)
def test_a_compiled_step_is_the_models_own_in_every_state_of_a_session(family):
    model = tiny(family, torch.float32)
    writer = CompiledStep(model)
    assert through_a_session(model, writer) < FLOAT32
    assert in_a_batch(writer) == 0


def test_factors_of_branches_and_before_a_gate_are_computed():
    """A Llama whose attention and network stand side by side with factors around them, as Falcon-H1's do."""
    spec = tiny("llama", torch.float32).spec
    attention, network = (spec.stack.blocks[0].residuals[name].branch for name in ("attention", "feed_forward"))
    factor = lambda number: Scale.Spec(factor=number)  # noqa: E731
    branches = {
        "attention": Normed.Spec(norm=factor(1.5), branch=attention, post=factor(0.25)),
        "feed_forward": Normed.Spec(norm=factor(0.5), branch=replace(network, before=factor(2.5)), post=factor(3.0)),
    }
    residual = Residual.Spec(branch=Sum.Spec(branches=branches), pre=RMSNorm.Spec())
    block = Block.Spec(residuals={"parallel": residual})
    changed = replace(spec, stack=replace(spec.stack, blocks=(block, block)))
    model = randomised(changed.build(0).float().eval())
    writer = CompiledStep(model)
    assert through_a_session(model, writer) < FLOAT32
    parts = model.stack.blocks[0].parallel.branch
    for scale in (
        parts.attention.norm,
        parts.attention.post,
        parts.feed_forward.branch.before,
        parts.feed_forward.post,
    ):
        right, scale.factor = scale.factor, 1.0
        assert through_a_session(model, writer) > FLOAT32
        scale.factor = right


def _instructions(writer):
    return writer._program._program


def _wrong_partner(writer):
    rows = _instructions(writer)
    rows[rows[:, 0] == code.ROTATE, 10] = 1


def _no_new_key(writer):
    rows = _instructions(writer)
    rows[rows[:, 0] == code.STORE, 8] = 0


def _no_final_norm(writer):
    rows, last = _instructions(writer), np.flatnonzero(_instructions(writer)[:, 0] == code.NORM)[-1]
    rows[last, 7] = 1 - rows[last, 7]


def _one_position_late(writer):
    spans = writer._program._spans
    writer._program._spans = lambda *arguments: spans(*arguments) - np.array([0, 0, 1])


@pytest.mark.parametrize("spoil", [_wrong_partner, _no_new_key, _no_final_norm, _one_position_late])
def test_a_broken_program_is_found(spoil):
    model = tiny("llama", torch.float32)
    writer = CompiledStep(model)
    spoil(writer)
    assert not through_a_session(model, writer) < 1e-3


def test_a_broken_batch_is_found():
    writer = CompiledStep(tiny("llama", torch.float32))
    right = writer._program.__class__.__call__

    class Off:
        def __call__(self, tokens, cache):
            return right(writer_program, tokens, cache) + 1e-6 * (len(tokens) > 2)

    writer_program, writer._program = writer._program, Off()
    assert in_a_batch(writer) > 0


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2", "bloom", "qwen2"])
def test_bfloat16_is_no_further_from_float32_than_the_model_itself(family):
    exact = smallest(family, torch.bfloat16).to(torch.float32)
    model = smallest(family, torch.bfloat16)
    writer = CompiledStep(model)
    ids = torch.arange(24).view(2, 12)
    written = torch.arange(12).view(2, 6)
    with torch.no_grad():
        sessions = [way.start(ids, 20)[1] for way in (exact, model, writer)]
        steps = [
            torch.cat([way.step(written[:, t : t + 1], own) for t in range(6)], 1).float()
            for way, own in zip((exact, model, writer), sessions, strict=True)
        ]
    eager, compiled = ((steps[0] - other).abs().max() for other in steps[1:])
    assert 0 < compiled <= eager


@pytest.mark.parametrize("family", ["llama", "gemma2", "bloom"])
def test_the_engine_writes_bit_for_bit_what_each_request_alone_would(family):
    writer = CompiledStep(smallest(family, torch.float32))
    requests = [
        Request([3 + n, 9, n], Limits(8, 20), sampler(temperature=1.1) if n % 2 else GREEDY, seed=n, scores=2)
        for n in range(6)
    ]
    together = Engine(
        writer, TOKENIZER, 20, most_rows=4, chunk=3
    )  # a prompt a call: torch reads several otherwise than one
    answers = [together.add(request) for request in requests]
    while together.advance():
        pass
    for request, answer in zip(requests, answers, strict=True):
        alone = Engine(writer, TOKENIZER, 20, most_rows=1, chunk=3)
        own = alone.add(request)
        while alone.advance():
            pass
        assert answer.error is None
        assert answer.row.ids == own.row.ids
        assert answer.scores == own.scores


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_whole_numbers_are_read_as_the_model_reads_them(family):
    model = Quantise().apply(small(family, torch.float32))
    writer = CompiledStep(model)
    assert through_a_session(model, writer) < FLOAT32
    assert in_a_batch(writer) == 0


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_table_in_blocks_is_looked_up_as_the_model_looks_it_up(kind):
    model = small("llama", torch.float32, hidden_size=256)
    table = random_blocks(model.spec.vocabulary, 256, BY_NAME[kind], np.random.default_rng(0))
    model.embed.token = BlockEmbedding(
        nn.Parameter(torch.from_numpy(table), requires_grad=False), BY_NAME[kind], torch.empty(0)
    )
    writer = CompiledStep(model)
    assert code.EMBED_BLOCKS in writer._program._program[:, 0]
    assert through_a_session(model, writer) < FLOAT32
    assert in_a_batch(writer) == 0
    writer._program._program[0, 10] += 1  # bytes of a row: every token but the first is read from another place
    assert not through_a_session(model, writer) < FLOAT32


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_a_stream_that_caches_hold_otherwise_is_left_to_the_model(dtype):
    model = small("llama", torch.float32, hidden_size=256)
    store_table(model, "embed.token.weight")
    assert why_not(model) is None
    assert f"a stream in {str(dtype)[6:]}" in why_not(model.to(dtype))


@torch.no_grad()
@pytest.mark.parametrize("rows", [1, 64])  # by a kernel, and written out
def test_blocks_are_read_as_float32_whatever_torch_makes_where_nothing_is_said(rows):
    kind = BY_NAME["Q4_1"]
    blocks = torch.from_numpy(random_blocks(64, 256, kind, np.random.default_rng(0)))
    linear = BlockLinear(nn.Linear(256, 64, bias=False), nn.Parameter(blocks, requires_grad=False), kind)
    x = torch.randn(rows, 256, generator=torch.Generator().manual_seed(0))
    right, model = linear(x), small("llama", torch.float32)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        table = BlockEmbedding(linear.weight, kind, torch.empty(0, dtype=torch.float32))
        assert torch.equal(linear(x), right)
        assert torch.equal(linear.matrix(), unpacked(blocks, kind))
        assert table(torch.tensor([1])).dtype == torch.float32
        assert through_a_session(model, CompiledStep(model)) < FLOAT32
        empty = StoredBlocks(parameters=("embed.token.weight Q8_0",)).apply(build_on_meta(model.spec))
        assert empty.embed.token.floats.dtype == torch.float32
    finally:
        torch.set_default_dtype(usual)


@torch.no_grad()
@pytest.mark.parametrize("scaling", [None, {"rope_type": "dynamic", "factor": 2.0}], ids=["plain", "dynamic"])
def test_positions_beyond_those_that_were_computed_first_are_computed(scaling, monkeypatch):
    """Capacities change the angles of a dynamic scaling, and one program serves them all."""
    monkeypatch.setattr(program, "_FIRST_ANGLES", 4)
    model = small("llama", torch.float32, max_position_embeddings=20, rope_parameters=scaling)
    writer = CompiledStep(model)
    for capacity in (24, 40, 60):
        sessions = [way.start(torch.tensor([[1, 2, 3], [4, 5, 6]]), capacity, [3, 2])[1] for way in (model, writer)]
        for token in range(12):
            mine, own = (
                way.step(torch.full((2, 1), token), session)
                for way, session in zip((writer, model), sessions, strict=True)
            )
            assert deviation(mine, own) < FLOAT32
    assert len(writer._program._angles) == (1 if scaling is None else 3)
    assert {len(cosine) for cosine, _ in writer._program._angles.values()} == {24}


def test_a_program_keeps_the_angles_of_a_few_rotations_alone():
    model = small("llama", torch.float32, rope_parameters={"rope_type": "dynamic", "factor": 2.0})
    writer = CompiledStep(model)
    with torch.no_grad():
        for capacity in range(60, 80):
            _, session = writer.start(torch.tensor([[1, 2]]), capacity)
            writer.step(torch.tensor([[1]]), session)
    assert len(writer._program._angles) <= 8


def test_pages_and_adapters_are_left_to_the_model():
    model = small("llama", torch.float32)
    writer = CompiledStep(model)
    paged = PagedModel(writer, PagePool(size=4))
    limits = Limits(8, 48)
    expected = generate(model, [[1, 2, 3]], TOKENIZER, limits)[0].ids
    assert generate(paged, [[1, 2, 3]], TOKENIZER, limits)[0].ids == expected
    LoRA(rank=2).apply(model)
    assert generate(writer, [[1, 2, 3]], TOKENIZER, limits)[0].ids == expected
    assert not writer.row_invariant


def test_greedy_tokens_are_those_of_the_model():
    model = small("gpt2", torch.float32)
    limits = Limits(20, 48)
    prompts = [[1, 2, 3], [5, 6, 7, 8, 9], [44]]
    eager, compiled = (generate(way, prompts, TOKENIZER, limits) for way in (model, CompiledStep(model)))
    assert [one.ids for one in compiled] == [one.ids for one in eager]


def test_eight_threads_write_at_once():
    writer = CompiledStep(small("llama", torch.float32))
    limits, answers = Limits(24, 48), {}

    def write(number):
        answers[number] = [generate(writer, [[number, 2, 3]], TOKENIZER, limits)[0].ids for _ in range(4)]

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        assert answers[number] == [generate(writer, [[number, 2, 3]], TOKENIZER, limits)[0].ids] * 4


def test_a_model_whose_numbers_change_is_written_anew():
    model = small("gpt2", torch.float32)
    writer = CompiledStep(model)
    with torch.no_grad():
        model.stack.final.weight.mul_(3)
    assert through_a_session(model, writer) < FLOAT32


def test_a_program_is_made_anew_for_every_writer_of_a_model_that_changed():
    model = small("gpt2", torch.float32)
    first = stepping(model, "compiled")
    with torch.no_grad():
        model.stack.final.weight.mul_(3)
    assert through_a_session(model, first) < FLOAT32
    second = stepping(model, "compiled")
    assert second._program is first._program
    assert through_a_session(model, second) < FLOAT32


def test_a_model_goes_when_its_user_lets_go_of_it():
    model = small("llama", torch.float32)
    writer = stepping(model, "compiled")
    generate(writer, [[1, 2, 3]], TOKENIZER, Limits(4, 48))
    gone = weakref.ref(model)
    del model, writer
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_a_model_that_learns_is_written_as_it_is_now(kind):
    model = small("gpt2", torch.float32)
    writer = CompiledStep(model)
    assert through_a_session(model, writer) < FLOAT32
    settings = TrainingSettings.model_validate({"steps": 1, "optimizer": {"kind": kind, "rate": 0.1}})
    optimizer = build_optimizer(model, settings.optimizer)  # fused, so that torch counts no version
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    assert through_a_session(model, writer) < FLOAT32


def test_what_cannot_be_compiled_is_refused_by_name_or_left_to_the_model():
    model = small("llama", torch.float64)
    assert stepping(model) is model
    with pytest.raises(UsageError, match="float64"):
        stepping(model, "compiled")
    with pytest.raises(UsageError, match="no kernel 'fast'"):
        stepping(model, "fast")
    adapted = LoRA(rank=2).apply(small("llama", torch.float32))
    assert "AdaptedLinear" in why_not(adapted)
    model = small("llama", torch.float32)
    writer = stepping(model, "compiled")
    assert isinstance(writer, CompiledStep)
    assert stepping(model, "compiled")._program is writer._program
    assert stepping(model, "eager") is model


class Foreign(nn.Module):
    """A part that no instruction computes."""


def _foreign(place):
    """Return what puts a foreign part into a model."""

    def change(model):
        owner, _, name = place.rpartition(".")
        setattr(model.get_submodule(owner), name, Foreign())

    return change


def _activation(model):
    model.get_submodule("stack.blocks.0.feed_forward.branch").activation = torch.sin


BLOCK = "stack.blocks.0"
PARTS = {
    "embed": "an embedding of the kind Foreign",
    "head": "a head of the kind Foreign",
    "stack.positions.rotary": "positions 'rotary' of the kind Foreign",
    "stack.enter": "a Foreign",
    "stack.final": "a Foreign",
    f"{BLOCK}": "a block of the kind Foreign",
    f"{BLOCK}.attention": "a Foreign in a block",
    f"{BLOCK}.attention.pre": "a Foreign",
    f"{BLOCK}.attention.skip": "a Foreign as a residual connection",
    f"{BLOCK}.attention.branch": "a Foreign",
    f"{BLOCK}.attention.branch.source": "an attention that reads a Foreign",
}


@pytest.mark.parametrize("place", [*PARTS, "activation"])
def test_a_part_without_an_instruction_is_named(place):
    model = small("llama", torch.float32)
    assert why_not(model) is None
    (_activation if place == "activation" else _foreign(place))(model)
    part = PARTS.get(place, "the activation None")
    assert why_not(model) == f"no instruction computes {part}"
    assert stepping(model) is model
    with pytest.raises(UsageError, match=re.escape(part)):
        stepping(model, "compiled")


def test_a_token_outside_the_vocabulary_reads_no_memory():
    writer = CompiledStep(small("llama", torch.float32))
    with torch.no_grad():
        _, session = writer.start(torch.tensor([[1, 2]]), 8)
        for token in (-1, 10**9):
            with pytest.raises(DataError, match="outside the vocabulary"):
                writer.step(torch.tensor([[token]]), session)
        assert session.lengths == (2,)


def test_a_full_row_is_refused_and_the_session_goes_on():
    writer = CompiledStep(small("llama", torch.float32))
    with torch.no_grad():
        _, session = writer.start(torch.tensor([[1, 2]]), 3)
        writer.step(torch.tensor([[1]]), session)
        with pytest.raises(UsageError, match="does not fit"):
            writer.step(torch.tensor([[1]]), session)
        assert session.lengths == (3,)


def test_a_step_compiles_nothing_that_was_not_compiled_before_it():
    writer = CompiledStep(small("llama", torch.float32))
    with torch.no_grad():
        _, session = writer.start(torch.tensor([[1, 2], [3, 4]]), 8)
        for tokens in ([[1], [2]], [[3], [4]]):
            writer.step(torch.tensor(tokens), session)
    building._compiled()  # again: what is there is taken
    (signature,) = run.signatures
    assert {array.layout for array in signature if hasattr(array, "layout")} == {"C"}


def test_memory_of_a_call_serves_the_next_one():
    writer = CompiledStep(small("llama", torch.float32))
    with torch.no_grad():
        _, session = writer.start(torch.tensor([[1, 2]]), 8)
        held = []
        for token in (1, 2, 3):
            writer.step(torch.tensor([[token]]), session)
            held.append([id(work) for work in writer._program._free])
    assert held[0] == held[1] == held[2]
    assert len(held[0]) == 1


@pytest.fixture
def unbuilt(tmp_path, monkeypatch):
    """A folder with machine code of two functions that cannot be read."""
    monkeypatch.setattr(building, "machine_code_folder", lambda: tmp_path)
    for name in ("one.nbi", "one.1.nbc"):
        (tmp_path / "module").mkdir(exist_ok=True)
        (tmp_path / "module" / name).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize("fault", [OSError(errno.EIO, "broken"), EOFError(), UnpicklingError()], ids=repr)
def test_machine_code_that_cannot_be_read_is_compiled_anew(unbuilt, monkeypatch, fault):
    answers = [fault, ["entries"]]

    def compiled():
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(building, "_compiled", compiled)
    assert building.build().args == (["entries"],)
    assert {path.name for path in unbuilt.rglob("*") if path.is_file()} == {READY, LOCK}


def test_no_room_for_machine_code_is_a_fault_of_the_machine(unbuilt, monkeypatch):
    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(building, "_compiled", full)
    with pytest.raises(MachineError, match=f"{unbuilt}: machine code cannot be kept there: No space left") as error:
        building.build()
    assert error.value.hint == "make room there, or have steps computed eagerly (kernel eager)"
    assert not (unbuilt / READY).exists()


@pytest.fixture
def cache(tmp_path):
    """A user's cache folder with all machine code."""
    compiled_run()
    shutil.copytree(machine_code_folder(), tmp_path / "orrery" / "numba" / machine_code_folder().name)
    return tmp_path


def _program(cache, *words):
    environment = os.environ | {"XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, *words], env=environment)


_BUILD = ("-m", "orrery.kernels.step.build")
_SHARED = """
import torch
from orrery.families import load_family
from orrery.generation.compiled_step import CompiledStep

config = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4}
model = load_family("llama").spec({**config, "vocab_size": 64}).build(0).eval()
with torch.no_grad():
    writer = CompiledStep(model)
    _, session = writer.start(torch.zeros(2, 4, dtype=torch.int64), 8)
    writer.step(torch.zeros(2, 1, dtype=torch.int64), session)
"""


@pytest.mark.slow
def test_machine_code_of_a_build_that_was_cut_short_runs(cache):
    for file in cache.glob("orrery/numba/*/*/run.run-*"):
        file.unlink()
    assert _program(cache, *_BUILD).wait() == 0  # compiles what calls parallel functions, and not these
    assert _program(cache, "-c", _SHARED).wait() == 0


@pytest.mark.slow
def test_machine_code_that_cannot_be_read_is_made_anew(cache):
    for file in cache.glob("orrery/numba/*/*/run.run-*"):
        os.truncate(file, 200)
    assert _program(cache, "-c", _SHARED).wait() == 0


@pytest.mark.slow
def test_programs_compile_one_at_a_time(cache):
    begin = time.monotonic()
    assert _program(cache, *_BUILD).wait() == 0
    took = time.monotonic() - begin
    with (cache / "orrery" / "numba" / machine_code_folder().name / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        other = _program(cache, *_BUILD)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=2 * took)
    assert other.wait() == 0
