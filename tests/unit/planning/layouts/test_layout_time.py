"""Communication and time by hand."""

import math
from dataclasses import replace

import pytest

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.planning.layouts.communication import (
    all_gather,
    all_reduce,
    all_to_all,
    layer_bytes,
    reduce_scatter,
    route,
    routes,
    step_bytes,
    traffic,
)
from orrery.planning.layouts.layout import FULL, NOTHING, SELECTIVE, ParallelLayout
from orrery.planning.layouts.layout_plan import plan_layout
from orrery.planning.layouts.step_time import bubble, layer_passes, step_time
from orrery.planning.layouts.training import EAGER, FLASH, TrainingStep, training_of
from orrery.planning.layouts.work import work_of
from orrery.planning.machines import Efficiency, load_machine
from orrery.planning.presets import preset

GPT3 = work_of(preset("gpt3-175b"), "gpt3-175b")
LAYER = 1_812_361_472
TABLE = 617_558_016
A100 = load_machine("a100-80gb")
IDEAL = replace(A100, efficiency=Efficiency(1, 1, 1, "ideal"), latency=0.0)
TRAINING = TrainingStep(1_536, 2_048)
STREAM = 2 * 2_048 * 12_288


def test_volumes_of_collectives():
    assert all_gather(8, 800) == reduce_scatter(8, 800) == all_to_all(8, 800) == 700
    assert all_reduce(8, 800) == 1_400
    assert all_reduce(1, 800) == 0


def test_what_a_layer_sends():
    """Two all-reduces of 2 s b h bytes a pass; keys and values of fifteen other ranks; an eighth of the boundary."""
    layout = ParallelLayout(tensor=8, pipeline=16, context=16)
    sent = layer_bytes(GPT3, TRAINING, layout)
    assert sent.tensor == 2 * 2 * 7 / 8 * STREAM / 16
    assert sent.context == 15 * 2 * 128 * 2 * 96 * 128 / 8
    assert sent.boundary == STREAM / 16 / 8
    assert sent.weights == sent.gradients == sent.expert == 0


def test_what_fsdp_sends():
    third = layer_bytes(GPT3, TRAINING, ParallelLayout(fsdp=64, zero=3))
    assert (third.weights, third.gradients) == (63 / 64 * 2 * LAYER, 63 / 64 * 2 * LAYER)
    once = step_bytes(GPT3, TRAINING, ParallelLayout(data=4, fsdp=64, zero=1))
    held = 174_604_259_328
    assert once.weights == once.gradients == pytest.approx(63 / 64 * 2 * held)
    assert once.copies == 2 * 3 / 4 * 2 * held / 64
    second = ParallelLayout(fsdp=64, zero=2)
    assert layer_bytes(GPT3, TRAINING, second).gradients == 63 / 64 * 2 * LAYER
    assert step_bytes(GPT3, TRAINING, second).gradients == 0


def test_tokens_go_to_their_experts_and_back():
    mixtral = work_of(load_family("mixtral").spec({}), "mixtral")
    sent = layer_bytes(mixtral, TrainingStep(8, 4_096), ParallelLayout(data=8, expert=8))
    assert sent.expert == 2 * 7 / 8 * 2 * 2 * 4_096 * 4_096


def test_which_network_carries_a_group():
    layout = ParallelLayout(data=4, fsdp=2, tensor=4, pipeline=2)
    networks = routes(IDEAL, layout)
    assert (networks.tensor.inside, networks.fsdp.inside, networks.data.inside) == (True, True, False)
    assert (networks.tensor.bandwidth, networks.data.bandwidth) == (300e9, 25e9)
    # Eight devices of a node send through eight cards; never faster than inside the node.
    assert route(IDEAL, 64, 1).bandwidth == 8 * 25e9
    assert route(replace(IDEAL, network_bandwidth=100e9), 64, 1).bandwidth == 300e9
    assert route(replace(IDEAL, latency=1.0), 64, 1).latency == 6


def test_a_stage_sends_to_the_next_one_alone():
    slow = replace(IDEAL, latency=1.0)
    for stages, ranks in ((1, 1), (2, 2), (16, 2)):
        network = routes(slow, ParallelLayout(tensor=8, pipeline=stages)).pipeline
        assert (network.ranks, network.latency) == (ranks, ranks - 1)


def test_the_table_of_traffic_adds_up():
    layout = ParallelLayout(data=8, tensor=8, pipeline=16, recompute=FULL)
    by_kind = {one.kind: one for one in traffic(GPT3, TRAINING, layout, A100)}
    assert set(by_kind) == {"tensor", "data", "pipeline"}
    behind = 192 * 7 / 8 * (3 * STREAM + 2 * 2_048 * 50_257)  # the last stage has the head
    assert by_kind["tensor"].bytes == 3 * 192 * 6 * 2 * 2 * 7 / 8 * STREAM + behind
    assert by_kind["pipeline"].bytes == 2 * 192 * STREAM / 8
    assert by_kind["data"].bytes == 2 * 7 / 8 * 2 * (6 * LAYER + TABLE) / 8
    assert (by_kind["tensor"].inside, by_kind["data"].inside) == (True, False)


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), [(4, 8, 1), (16, 32, 8), (1, 5, 1)])
def test_the_bubble(stages, micro_batches, chunks):
    """Idle over work ``(p - 1) / (v m)``; of the whole ``(p - 1) / (v m + p - 1)``."""
    idle = bubble(stages, micro_batches, chunks)
    assert idle == (stages - 1) / (chunks * micro_batches)
    assert idle / (1 + idle) == pytest.approx((stages - 1) / (chunks * micro_batches + stages - 1))


def test_the_bubble_of_a_step_is_that_share_of_its_passes():
    layout = ParallelLayout(data=8, tensor=8, pipeline=16)
    time = step_time(GPT3, TRAINING, layout, IDEAL)
    worked = time.matmul + time.attention + time.memory + time.tensor + time.head
    filling = 2 * 15 * STREAM / 8 / 25e9
    assert time.bubble == pytest.approx(15 / 192 * worked + filling)


def test_one_device_on_an_ideal_machine_computes_at_its_rate():
    """Without attention, memory and optimizer the time is that of 6 N operations a token."""
    time = step_time(GPT3, TRAINING, ParallelLayout(), IDEAL)
    tokens = 1_536 * 2_048
    assert time.matmul == pytest.approx(6 * (174_604_259_328 - TABLE) * tokens / 312e12)
    assert time.attention == pytest.approx(3.5 * 4 * 96 * 12_288 * 1_024 * tokens / 312e12)
    assert time.optimizer == 30 * 174_604_259_328 / 2039e9
    logits = 16 * 50_257 / 2039e9
    assert time.head == pytest.approx(tokens * (6 * TABLE / 312e12 + logits))
    assert time.tensor == time.fsdp == time.data == time.bubble == time.context == time.expert == 0


def test_recomputation_adds_a_forward_pass():
    forward, backward = layer_passes(GPT3, TRAINING, ParallelLayout(tensor=8, recompute=NOTHING), IDEAL)
    _, full = layer_passes(GPT3, TRAINING, ParallelLayout(tensor=8, recompute=FULL), IDEAL)
    assert full.total == pytest.approx(backward.total + forward.total)
    eager = replace(TRAINING, kernel=EAGER)
    forward, backward = layer_passes(GPT3, eager, ParallelLayout(tensor=8, recompute=NOTHING), IDEAL)
    _, selective = layer_passes(GPT3, eager, ParallelLayout(tensor=8, recompute=SELECTIVE), IDEAL)
    scores = 2 * 5 * 96 * 2_048 * 2_048 / 8 / 2039e9
    assert selective.total == pytest.approx(backward.total + forward.attention + scores)


def test_communication_is_hidden_as_far_as_there_is_work():
    fast, slow = (replace(IDEAL, network_bandwidth=bandwidth) for bandwidth in (1e12, 1e8))
    for layout in (ParallelLayout(fsdp=64, zero=3), ParallelLayout(fsdp=64, zero=1)):
        assert step_time(GPT3, TRAINING, layout, fast).fsdp == 0
        assert step_time(GPT3, TRAINING, layout, slow).fsdp > 0
    assert step_time(GPT3, TRAINING, ParallelLayout(data=64), fast).data == 0
    assert step_time(GPT3, TRAINING, ParallelLayout(data=64), slow).data > 0
    long = TrainingStep(1, 131_072)
    assert step_time(GPT3, long, ParallelLayout(context=2), slow).context == 0  # in one node
    assert step_time(GPT3, long, ParallelLayout(context=2, tensor=8), slow).context > 0


def test_a_product_is_never_faster_than_its_weights_are_read():
    starved = replace(IDEAL, bandwidth=1e6)
    forward, _ = layer_passes(GPT3, TrainingStep(1, 2_048), ParallelLayout(), starved)
    assert forward.matmul == 2 * LAYER / 1e6


def test_throughput_utilisation_days_and_cost_follow_from_the_step():
    plan = plan_layout(GPT3, TRAINING, ParallelLayout(data=8, tensor=8, pipeline=16, recompute=FULL), A100)
    assert plan.tokens_per_second == 1_536 * 2_048 / plan.time.total
    operations = 6 * 174_604_259_328 + 12 * 96 * 12_288 * 2_048
    assert plan.mfu() == pytest.approx(operations * plan.tokens_per_second / (1_024 * 312e12))
    again = 2 * 96 * LAYER + 4 * 96 * 12_288 * 2_048
    assert plan.hfu() == pytest.approx(plan.mfu() * (operations + again) / operations)
    assert plan.days(300e9) == pytest.approx(300e9 / plan.tokens_per_second / 86_400)
    assert plan.cost(300e9) == pytest.approx(plan.days(300e9) * 24 * 1_024 * 5.12)
    assert plan_layout(GPT3, TRAINING, plan.layout, load_machine("h200")).cost(1) is None


def test_narayanans_estimate_of_the_days():
    """``8 T P / (n X)``: 34 days for 300 billion tokens on 1,024 devices at 140 teraflop/s (section 5.1)."""
    plan = plan_layout(GPT3, TRAINING, ParallelLayout(data=8, tensor=8, pipeline=16, recompute=FULL), A100)
    rate = plan.hfu() * 312e12
    assert plan.days(300e9) == pytest.approx(8 * 300e9 * 174.6e9 / (1_024 * rate) / 86_400, rel=0.03)


def test_the_batch_is_in_whole_sequences():
    assert training_of(GPT3, 3_200_000).sequences == 1_562
    assert training_of(GPT3, 2_048).kernel == FLASH
    with pytest.raises(UsageError, match="holds no sequence of gpt3-175b, which has 2,048"):
        training_of(GPT3, 2_000)
    with pytest.raises(UsageError, match="tpu-v4 has no rate for 'fp16'"):
        plan_layout(GPT3, TrainingStep(8, 2_048, "fp16"), ParallelLayout(), load_machine("tpu-v4"))


def test_all_parts_of_a_step_are_finite_and_not_negative():
    for layout in (ParallelLayout(), ParallelLayout(2, 4, 8, 6, 2, zero=2, micro=2, interleave=4, recompute=SELECTIVE)):
        parts = vars(step_time(GPT3, TRAINING, layout, A100)).values()
        assert all(math.isfinite(part) and part >= 0 for part in parts)
