"""Matrix states against transformers' own: Qwen3-Next's gated delta rule and MiniMax's lightning attention."""

from functools import partial

import pytest
import torch
from transformers import MiniMaxConfig, Qwen3NextConfig

from orrery.nn.linear import delta, matrix_state
from orrery.nn.linear.gated_delta import Forgetting, GatedDelta
from tests.parity.helper import error
from tests.parity.oracle import modelling, randomise, widened

QWEN, MINIMAX = modelling("qwen3_next"), modelling("minimax")
TOKENS = [1, 5, 64, 70]


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("theirs", ["torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"])
def test_the_gated_delta_rule_is_qwen3_nexts(theirs, tokens):
    torch.manual_seed(tokens)
    q, k = (torch.nn.functional.normalize(drawn(2, tokens, 3, 8), dim=-1) for _ in "qk")
    v, state = drawn(2, tokens, 3, 6), drawn(2, 3, 8, 6)
    decay, share = -drawn(2, tokens, 3).abs() * 3, drawn(2, tokens, 3).sigmoid()
    with widened(QWEN):
        expected, after = getattr(QWEN, theirs)(q, k, v, decay, share, initial_state=state, output_final_state=True)
    for size in (1, 4, 64):
        mixed, left = delta.chunked(q * 8**-0.5, k, v, decay, share, state, size=size)
        assert error(mixed, expected) < 1e-9
        assert error(left, after) < 1e-9


@pytest.mark.parametrize("tokens", TOKENS)
def test_the_mixer_is_qwen3_nexts_with_its_weights(tokens):
    torch.manual_seed(0)
    config = Qwen3NextConfig(
        hidden_size=12,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=4,
        linear_value_head_dim=6,
        linear_conv_kernel_dim=3,
        rms_norm_eps=1e-5,
    )
    theirs = QWEN.Qwen3NextGatedDeltaNet(config, 0).double()
    randomise(theirs, 3)
    ours = GatedDelta.Spec(
        heads=2, key_width=4, value_width=6, forget=Forgetting.Spec(heads=2), places=3, eps=1e-5, size=8
    ).build(12)
    x_BLD = drawn(2, tokens, 12)
    ours.double().load_state_dict(renamed(theirs.state_dict()))
    with widened(QWEN), torch.no_grad():
        expected = theirs(x_BLD)
    for form in ("step", "parallel", "chunked"):
        assert error(ours.compute(form, x_BLD, None, ours.begin(x_BLD))[0].detach(), expected) < 1e-9


def renamed(theirs):
    """Their weights under our names: they lie head by head, of each q, k, v and gate, then share and forgetting."""
    of_heads = theirs["in_proj_qkvz.weight"].view(2, 20, 12).split([4, 4, 6, 6], 1)
    write, forget = theirs["in_proj_ba.weight"].view(2, 2, 12).unbind(1)
    return {
        **{f"{name}.weight": part.flatten(0, 1) for name, part in zip(("q", "k", "v", "gate"), of_heads, strict=True)},
        "short.weight": theirs["conv1d.weight"],
        "write.weight": write,
        "forget.weight": forget,
        "forget.bias": theirs["dt_bias"],
        "forget.pace": theirs["A_log"],
        "norm.norm.weight": theirs["norm.weight"],
        "out.weight": theirs["out_proj.weight"],
    }


@pytest.mark.parametrize("tokens", TOKENS)
def test_a_fixed_decay_is_lightning_attention(tokens):
    torch.manual_seed(0)
    config = MiniMaxConfig(
        hidden_size=12,
        num_attention_heads=3,
        num_key_value_heads=3,
        head_dim=4,
        num_hidden_layers=2,
        block_size=16,
        layer_types=["linear_attention"] * 2,
    )
    theirs, heard = MINIMAX.MiniMaxLightningAttention(config, 0).double(), []
    theirs.slope_rate = theirs.get_slope_rate().double()
    factors = theirs.decay_factors(theirs.slope_rate)
    theirs.query_decay, theirs.key_decay, theirs.diagonal_decay = factors
    theirs.norm.register_forward_pre_hook(lambda module, given: heard.append(given[0]))
    x_BLD = drawn(2, tokens, 12)
    with widened(MINIMAX), torch.no_grad():
        theirs(x_BLD, None, None)
        qkv_BLE = theirs.act_fn(theirs.qkv_proj(x_BLD))
    q, k, v = qkv_BLE.view(2, tokens, 3, 12).split(4, -1)
    decay = -theirs.slope_rate[:, 0].expand(2, tokens, 3, 1)
    for run in (matrix_state.parallel, partial(matrix_state.chunked, size=64)):
        y_BLHE, _ = run(q, k, v, decay, matrix_state.empty(x_BLD, 3, 4, 4))
        assert error(y_BLHE.flatten(2), heard[0]) < 1e-9
