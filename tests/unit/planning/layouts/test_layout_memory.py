"""Memory by hand: the equations of Korthikanti et al. 2022 and Rajbhandari et al. 2020 in whole numbers."""

from dataclasses import replace

import pytest

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.planning.layouts.layout import FULL, SELECTIVE, ParallelLayout
from orrery.planning.layouts.memory import in_flight, layer_activations, memory
from orrery.planning.layouts.training import EAGER, RUN, TrainingStep
from orrery.planning.layouts.work import DecoderWork, work_of
from orrery.planning.presets import preset

GPT3 = work_of(preset("gpt3-175b"), "gpt3-175b")
TRAINING = TrainingStep(1_536, 2_048, kernel=EAGER, dropout=1)
LAYER = 1_812_361_472  # (174,604,259,328 - 50,257 x 12,288) / 96
TABLE = 617_558_016


def test_the_work_of_gpt3():
    shape = (GPT3.layers, GPT3.width, GPT3.heads, GPT3.kv_heads, GPT3.head_width, GPT3.hidden)
    assert shape == (96, 12_288, 96, 96, 128, 49_152)
    assert (GPT3.parameters, GPT3.block, GPT3.table) == (174_604_259_328, LAYER, TABLE)
    assert (GPT3.ups, GPT3.branches, GPT3.tied, GPT3.experts) == (1, 2, True, 1)


def test_the_work_of_palm_is_of_one_branch_and_one_head_of_keys():
    palm = work_of(preset("palm-540b"), "palm-540b")
    assert (palm.branches, palm.ups, palm.kv_heads, palm.head_width) == (1, 2, 1, 256)


def test_training_operations_are_those_of_the_papers():
    palm = work_of(preset("palm-540b"), "palm-540b")
    assert palm.operations(2_048) * 780e9 == pytest.approx(2.56e24, rel=2e-3)
    assert palm.operations(2_048, 0) * 780e9 == pytest.approx(2.53e24, rel=1e-3)


def test_a_mixture_is_counted_by_what_is_active():
    mixtral = work_of(load_family("mixtral").spec({}), "mixtral")
    assert (mixtral.experts, mixtral.chosen, mixtral.ups) == (8, 2, 2)
    assert mixtral.block_experts == 8 * 3 * 4_096 * 14_336
    assert mixtral.block - mixtral.block_active == 6 * 3 * 4_096 * 14_336


def test_gpt3_on_eight_tensor_ranks_and_sixteen_stages():
    """Six layers of 1,812,361,472 parameters and a table, an eighth of each, in 2, 2 and 12 bytes."""
    needed = memory(GPT3, TRAINING, ParallelLayout(data=8, tensor=8, pipeline=16, recompute=SELECTIVE))
    held = (6 * LAYER + TABLE) // 8
    assert held == 1_436_465_856
    assert (needed.weights, needed.gradients, needed.optimizer) == (2 * held, 2 * held, 12 * held)
    # 34 s b h / 8 a layer; six layers of sixteen micro batches; the embedding's dropout mask of each.
    assert needed.activations == 16 * (6 * 34 * 2_048 * 12_288 // 8 + 2_048 * 12_288 // 8)
    assert needed.working == 5 * 96 * 2_048 * 2_048 // 8
    assert needed.logits == 0
    assert needed.total == 16 * held + needed.activations + needed.working


@pytest.mark.parametrize(
    ("layout", "bytes_of_token"),
    [
        (ParallelLayout(), 34 * 12_288 + 5 * 96 * 2_048),
        (ParallelLayout(tensor=8), (34 * 12_288 + 5 * 96 * 2_048) / 8),
        (ParallelLayout(tensor=8, sequence=False), 10 * 12_288 + 24 * 12_288 / 8 + 5 * 96 * 2_048 / 8),
        (ParallelLayout(tensor=8, recompute=SELECTIVE), 34 * 12_288 / 8),
        (ParallelLayout(tensor=8, recompute=FULL), 2 * 12_288 / 8),
        (ParallelLayout(tensor=8, sequence=False, recompute=FULL), 2 * 12_288),
    ],
)
def test_activations_of_a_layer_are_korthikantis(layout, bytes_of_token):
    """``s b h (34 + 5 a s / h)`` and its relatives (equations 1 to 6)."""
    assert layer_activations(GPT3, TRAINING, layout).kept(layout.recompute) == bytes_of_token * 2_048


def test_activations_in_flight():
    """``p``, or ``p (1 + (p - 1) / (p v))``, and never more than there are micro batches."""
    assert in_flight(ParallelLayout(pipeline=8), 64) == 8
    assert in_flight(ParallelLayout(pipeline=8, interleave=3), 64) == pytest.approx(8 * (1 + 7 / 24))
    assert in_flight(ParallelLayout(pipeline=8), 4) == 4
    assert in_flight(ParallelLayout(pipeline=8), 64, ahead=7) == 1


def test_one_device_holds_sixteen_bytes_a_parameter_and_the_logits():
    needed = memory(GPT3, TRAINING, ParallelLayout())
    assert needed.weights + needed.gradients + needed.optimizer == 16 * 174_604_259_328
    assert needed.logits == 4 * 2_048 * (12_288 + 50_257)


@pytest.mark.parametrize(("zero", "bytes_of_parameter"), [(1, 4 + 12 / 64), (2, 2 + 14 / 64), (3, 16 / 64)])
def test_zero_shards_the_optimizer_then_gradients_then_weights(zero, bytes_of_parameter):
    needed = memory(GPT3, TRAINING, ParallelLayout(fsdp=64, zero=zero))
    assert needed.weights + needed.gradients + needed.optimizer == bytes_of_parameter * 174_604_259_328
    assert needed.gathered == (2 * (2 * LAYER + TABLE) if zero == 3 else 0)


@pytest.mark.parametrize(("zero", "bytes_of_parameter"), [(1, 8 + 12 / 64), (2, 4 + 16 / 64), (3, 16 / 64)])
def test_a_run_has_shards_beside_whole_weights(zero, bytes_of_parameter):
    needed = memory(GPT3, replace(TRAINING, bytes=RUN), ParallelLayout(fsdp=64, zero=zero))
    assert needed.weights + needed.gradients + needed.optimizer == bytes_of_parameter * 174_604_259_328
    assert needed.gathered == (4 * (2 * LAYER + TABLE) if zero == 3 else 0)


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_more_shards_never_need_more_memory(zero):
    sizes = [memory(GPT3, TRAINING, ParallelLayout(fsdp=2**n, zero=zero)).total for n in range(1, 10)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_the_fullest_stage_may_be_between_the_ends():
    """126 layers in 16 stages: the ends have seven, the others eight (Dubey et al. 2024)."""
    llama = replace(GPT3, layers=126, parameters=126 * LAYER + 2 * TABLE, tied=False)
    layout = ParallelLayout(pipeline=16)
    assert (layout.slots(llama), layout.spare(llama)) == (8, 2)
    needed = memory(llama, TrainingStep(64, 2_048), layout)
    assert needed.weights == 2 * max(8 * LAYER, 7 * LAYER + TABLE)


def test_experts_are_shared_out_and_copied_heads_are_not():
    mixtral = work_of(load_family("mixtral").spec({}), "mixtral")
    whole = memory(mixtral, TrainingStep(8, 4_096), ParallelLayout(data=8))
    shared = memory(mixtral, TrainingStep(8, 4_096), ParallelLayout(data=8, expert=8))
    assert whole.weights - shared.weights == 2 * 32 * 7 * 3 * 4_096 * 14_336
    # One head of keys and values on each of eight ranks: the ninth part would be a copy.
    eight, sixteen = (memory(mixtral, TrainingStep(8, 4_096), ParallelLayout(tensor=n)).weights for n in (8, 16))
    assert sixteen - eight / 2 == 2 * 32 * 4_096 * 2 * 8 * 128 / 16


def test_what_has_no_layout_is_refused():
    with pytest.raises(UsageError, match="transformer-base has no parallel layouts"):
        work_of(preset("transformer-base"), "transformer-base")
    with pytest.raises(UsageError, match="no parallel layouts"):
        work_of(load_family("bert").spec(load_family("bert").TINY), "bert")
    with pytest.raises(UsageError, match="without heads of a width"):
        work_of(load_family("mamba").spec(load_family("mamba").TINY), "mamba")


def test_a_work_can_be_written_by_hand():
    toy = DecoderWork("toy", 1_000_000, 1_000_000, 4, 64, 4, 4, 16, 256, 512, 128)
    assert memory(toy, TrainingStep(8, 128), ParallelLayout()).weights == 2_000_000
