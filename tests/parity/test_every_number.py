"""The identities that the numbers of a trace satisfy, in every family: each is computed here again.

Random in every parameter; float64 where two ways to one number are compared, float32 where the bound is of float32.
"""

from functools import cache

import pytest
import torch

from cover import kinds
from orrery.errors import UsageError
from orrery.families import names
from orrery.inspection.attribution.frozen import NotLinearError
from orrery.inspection.attribution.sublayers import ATTENTIONS
from orrery.inspection.pruning import without_heads
from orrery.inspection.trace import trace
from orrery.models.dual_encoder import DualEncoder
from orrery.nn.attention.alignment_score import Additive, General
from orrery.nn.attention.differential import DifferentialAttention
from orrery.nn.attention.kernels import eager
from orrery.nn.mixer import StatefulMixer
from tests.goldens.cases import IMAGES
from tests.parity.shown import only_shown
from tiny_models import inputs_for, smallest

FLOAT64, KERNEL, COMPONENTS = 1e-12, 1e-5, 1e-4
SINKS = {"gpt_oss"}
"""Families whose rows leave some weight to a sink, which is no key."""
NO_VOCABULARY = {*IMAGES, "clip", "clip_text_model", "siglip", "siglip_text_model"}
NOT_LINEAR = {
    "albert",
    "bert",
    "blip",
    "camembert",
    "deberta",
    "deberta_v2",
    "distilbert",
    "electra",
    "modernbert",
    "mpnet",
    "roberta",
    "xlm_roberta",
    "xlm_roberta_xl",
    *NO_VOCABULARY,
}
"""Families without logits that are a sum of parts: an activation stands before their vocabulary, or they have none."""
IN_THE_WEIGHTS = set(names()) - {
    *("albert", "deberta", "deberta_v2", "deepseek_v2", "deepseek_v3", "youtu", "zamba2"),  # shared blocks, latents
    *("bloom", "mpnet", "mpt", "mt5", "t5", "umt5"),  # positions with numbers for each head
    *("cohere", "minimax_m2", "olmo", "olmo2", "olmo3", "olmoe", "stablelm"),  # norms over all heads together
}
"""Families in which a head can be taken out of the weights."""
ONE_BY_ONE = {"gru", "lfm2", "lstm"}
"""Families whose engine computes all steps at once; under an edit it goes step by step, which rounds otherwise."""


def in_pieces(model):
    """Say whether a mixer computes piece by piece; under an edit it goes step by step too."""
    return any(isinstance(module, StatefulMixer) and "chunked" in module.forms for module in model.modules())


@cache
def inside(family, dtype=torch.float64):
    model = smallest(family, dtype)
    return trace(model, *inputs_for(model))


def patterns(keys):
    return [key for key in keys if key.endswith(".pattern")]


def error(a, b):
    return float((a - b).abs().max() / b.abs().max().clamp(min=1))


HEADS = {attention.Spec.kind for attention in ATTENTIONS}
ALIGNMENTS = {score.Spec.kind for score in (Additive, General)}
"""What a recurrent decoder compares its state with a source by: a pattern, but no heads."""
PAIRS = {DifferentialAttention.Spec.kind}
"""Heads in pairs, whose difference is one part: a pattern each, but no output of its own."""


def families_with(bricks):
    """Return the families whose specs hold one of these kinds of bricks: nothing is built to list the cases."""
    return [name for name in names() if kinds()[name] & bricks]


every_family = pytest.mark.parametrize("family", names())
with_patterns = pytest.mark.parametrize("family", families_with(HEADS | ALIGNMENTS))


def test_the_families_with_patterns_and_heads_are_those_whose_traces_have_them():
    assert families_with(HEADS | ALIGNMENTS | PAIRS) == [name for name in names() if patterns(inside(name))]
    assert families_with(HEADS) == [name for name in names() if attentions(inside(name))]


@with_patterns
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, FLOAT64), (torch.float32, KERNEL)], ids=str)
def test_the_rows_of_a_pattern_sum_to_one(family, dtype, bound):
    traced = inside(family, dtype)
    for key in patterns(traced):
        assert traced[key].min() >= 0
        row_BHL = traced[key].sum(-1)
        if family in SINKS:
            assert 0 < row_BHL.min() < row_BHL.max() < 1
        else:
            assert (row_BHL - 1).abs().max() < bound, key


@with_patterns
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, FLOAT64), (torch.float32, KERNEL)], ids=str)
def test_a_pattern_times_values_is_what_the_kernel_gave(family, dtype, bound):
    assert_mixed(inside(family, dtype), bound)


def assert_mixed(traced, bound):
    for key in patterns(traced):
        v_BKSC, mixed_BHLC = (traced[key.removesuffix("pattern") + name] for name in ("v", "mixed"))
        for head in range(mixed_BHLC.shape[1]):
            values_BSC = v_BKSC[:, head * v_BKSC.shape[1] // mixed_BHLC.shape[1]]
            assert error(traced[key][:, head] @ values_BSC, mixed_BHLC[:, head]) < bound, key


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_a_kernel_that_is_off_by_a_thousandth_is_seen(family, monkeypatch):
    from orrery.inspection import trace as module

    right = module.sdpa
    monkeypatch.setattr(module, "sdpa", lambda *args, **kwargs: right(*args, **kwargs) * 1.001)
    with pytest.raises(AssertionError):
        assert_mixed(inside.__wrapped__(family), KERNEL)


@with_patterns
def test_hidden_keys_have_no_weight(family):
    """The future of a decoder, and padding behind a text."""
    model, inputs = inside(family).model, inside(family).inputs
    keys = [key for key in patterns(inside(family)) if not key.startswith("encoder.") and ".cross" not in key]
    for key in keys if model.spec.writes else []:
        assert inside(family)[key].triu(1).abs().max() == 0, key
    if "ids" not in model.spec.inputs or len(inputs) > 1:
        return
    real = torch.arange(7) < torch.tensor([[7], [4]])
    padded = trace(model, *inputs, real=real)
    assert all(padded[key][1, :, :, 4:].abs().max() == 0 for key in keys)
    assert all(torch.isfinite(padded[key]).all() for key in keys)


@every_family
def test_the_parts_sum_to_the_stream_and_to_the_logits(family):
    """Every part, at every position, in float32: the direct attribution of each row's likeliest token."""
    traced = inside(family, torch.float32)
    parts = traced.parts(None)
    last = traced[f"{traced.model.stack.path}blocks.{len(traced.model.stack.order) - 1}.resid_post"]
    assert error(sum(parts[name].double() for name in parts.names), last.double()) < COMPONENTS
    if family in NOT_LINEAR:
        with pytest.raises((NotLinearError, UsageError)) as refused:
            traced.logit_attribution(position=None)
        assert refused.value.hint
        return
    attributed = traced.logit_attribution(position=None)
    logit_BL = traced.logits.max(-1).values
    cap = getattr(traced.model.head.cap, "cap", None)
    if cap is not None:  # the parts sum to what stands before the bend
        logit_BL = cap * torch.atanh(logit_BL / cap)
    assert error(attributed.value_NBP.double().sum(0), logit_BL.double()) < COMPONENTS
    assert torch.equal(attributed.token_BP, traced.logits.argmax(-1))


@every_family
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_the_last_row_of_the_lens_is_the_output_bit_for_bit(family, dtype):
    traced = inside(family, dtype)
    if family in NO_VOCABULARY:
        with pytest.raises(UsageError, match="scores no vocabulary"):
            traced.lens()
        return
    lens = traced.lens(k=3)
    assert lens.check.passed
    assert lens.check.bound == 0
    best = traced.logits.to(torch.promote_types(dtype, torch.float32)).log_softmax(-1).topk(3, dim=-1)
    assert torch.equal(lens.id_NBLK[-1], best.indices)
    assert torch.equal(lens.log_probability_NBLK[-1], best.values)


@every_family
def test_a_run_patched_with_itself_is_itself(family):
    """Bit for bit what the same computation gives without the patch."""
    traced = inside(family)
    for key in traced:
        if only_shown(family, key):
            continue
        patched = traced.edit(sources={"itself": traced}).patch(key, "itself").run([key])
        same = trace(traced.model, *traced.inputs, keep=[key], edit={key: lambda value, key: value})
        assert torch.equal(patched.logits, same.logits), key
        assert torch.equal(patched[key], same[key]), key
        if key.endswith((".scores", ".pattern")) or family in ONE_BY_ONE or in_pieces(traced.model):
            assert error(patched.logits, traced.logits) < FLOAT64, key
        else:
            assert torch.equal(patched.logits, traced.logits), key


@every_family
def test_nothing_added_is_nothing_changed(family):
    """Steering with strength zero."""
    traced = inside(family)
    key = f"{traced.model.stack.path}blocks.0.resid_pre"
    steered = traced.edit().add(key, [1.0] * traced[key].shape[-1], scale=0.0)
    assert torch.equal(steered.run([key]).logits, traced.logits)


def answered_from(model):
    """Return the stacks whose final streams the heads read: both sides of a dual encoder, every stage of a pyramid."""
    if isinstance(model, DualEncoder):
        return [model.sees.stack, model.reads.stack]
    return [stage.stack for stage in model.stages] if hasattr(model, "stages") else [model.stack]


@every_family
def test_the_stream_of_another_run_gives_its_logits(family):
    traced = inside(family)
    other = trace(traced.model, *inputs_for(traced.model, seed=9))
    edits = traced.edit(sources={"other": other})
    for stack in answered_from(traced.model):
        key = f"{stack.path}blocks.{len(stack.order) - 1}.resid_post"
        edits = edits.patch(key, "other")
    patched = edits.run([key])
    assert torch.equal(patched.logits, other.logits)
    assert not torch.equal(traced.logits, other.logits)


def attentions(traced):
    """Return each attention of the stack that answers with the keys of its taps: one for each depth that it serves."""
    stack = traced.model.stack
    modules = [
        (number, module)
        for number, block in enumerate(stack.blocks)
        for module in block.modules()
        if isinstance(module, ATTENTIONS)
    ]
    return [
        (module, [f"{stack.path}blocks.{depth}.{module.role}" for depth, n in enumerate(stack.order) if n == number])
        for number, module in modules
    ]


with_heads = pytest.mark.parametrize("family", families_with(HEADS))


def without(traced, keys, heads):
    """Return the logits with heads set to zero."""
    edits = traced.edit()
    for key in keys:
        edits = edits.zero(f"{key}.mixed", head=heads)
    logits = edits.run(["logits"]).logits
    assert error(logits, traced.logits) > 1e-6
    return logits


@with_heads
@torch.no_grad()
def test_a_head_set_to_zero_is_a_head_whose_columns_are_zero(family):
    traced = inside(family)
    for module, keys in attentions(traced):
        weight, width = module.out.weight, traced[f"{keys[0]}.mixed"].shape[-1]
        before = weight.clone()
        weight[:, width : 2 * width] = 0
        logits = traced.model.logits(*traced.inputs)
        weight.copy_(before)
        assert error(without(traced, keys, 1), logits) < FLOAT64, keys


@with_heads
@torch.no_grad()
def test_a_head_set_to_zero_is_a_head_that_is_removed(family):
    """Heads that share keys and values are removed together, where others share theirs."""
    traced = inside(family)
    for _, (key, *more) in attentions(traced):
        heads, groups = traced[f"{key}.mixed"].shape[1], traced[f"{key}.k"].shape[1]
        removed = list(range(heads // groups)) if groups > 1 else [0]
        if family not in IN_THE_WEIGHTS:
            with pytest.raises(UsageError) as refused:
                without_heads(traced.model, {key: removed})
            assert refused.value.hint
            continue
        smaller = without_heads(traced.model, {key: removed})
        assert not more
        assert error(smaller.logits(*traced.inputs), without(traced, [key], removed)) < FLOAT64, key


@every_family
def test_what_a_decoder_wrote_before_does_not_know_the_last_token(family):
    traced = inside(family)
    if not traced.model.spec.writes:
        return
    ids = traced.ids.clone()
    ids[:, -1] = (ids[:, -1] + 1) % traced.logits.shape[-1]
    with torch.no_grad():
        after = traced.model.logits(*traced.inputs[:-1], ids, kernel=eager)
    assert error(after[:, :-1], traced.logits[:, :-1]) < FLOAT64
    assert error(after[:, -1], traced.logits[:, -1]) > 1e-6
