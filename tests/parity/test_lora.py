"""Our adapters compute what peft's compute with the same matrices: logits, gradients, the merged model."""

import warnings

import pytest
import torch
import transformers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # theirs, about other libraries
    from peft import LoraConfig, get_peft_model

from orrery.exchange.reading.read import read
from orrery.tuning import merge
from orrery.tuning.lora import LoRA
from orrery.tuning.quantise import Quantise

# peft asks transformers by a name that is to go.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")
TARGETS = {"q_proj": "*.q", "v_proj": "*.v", "down_proj": "*.down"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A small Llama with random adapters: peft's, and ours with the same numbers."""
    folder = tmp_path_factory.mktemp("lora") / "llama"
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=61, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=2, max_position_embeddings=48, attn_implementation="eager",
    )  # fmt: skip
    base = transformers.LlamaForCausalLM(config).eval()
    base.save_pretrained(folder)
    theirs = get_peft_model(base, LoraConfig(r=4, lora_alpha=6, target_modules=list(TARGETS))).double().eval()
    ours = LoRA(rank=4, alpha=6.0, targets=tuple(TARGETS.values())).apply(read(str(folder)).model).double().eval()
    copied = 0
    for name, parameter in theirs.named_parameters():
        if "lora_" not in name:
            continue
        torch.nn.init.normal_(parameter)
        parts = name.split(".")
        layer, projection, side = parts[parts.index("layers") + 1], parts[-4], parts[-3]
        branch = "feed_forward.branch.down" if projection == "down_proj" else f"attention.branch.{projection[0]}"
        own = ours.get_parameter(f"stack.blocks.{layer}.{branch}.{side.lower()}")
        own.data.copy_(parameter)
        copied += 1
    assert copied == 2 * 3 * 2
    return theirs, ours


IDS = torch.arange(2 * 11).reshape(2, 11) * 7 % 61


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).detach().abs().max() / b.detach().abs().max().clamp(min=1))


def test_logits_and_gradients_of_the_adapters_are_pefts(both) -> None:
    theirs, ours = both
    expected, logits = theirs(IDS).logits, ours.logits(IDS)
    assert apart(logits, expected) < 1e-6  # their norms are computed in float32
    expected.square().mean().backward()
    logits.square().mean().backward()
    grads = {n: p.grad for n, p in ours.named_parameters() if p.grad is not None}
    wanted = [p.grad for n, p in theirs.named_parameters() if p.grad is not None]
    assert len(grads) == len(wanted) == 12
    norms = sorted(float(g.norm()) for g in grads.values())
    assert norms == pytest.approx(sorted(float(g.norm()) for g in wanted), rel=1e-5)
    theirs.zero_grad()
    ours.zero_grad()


def test_a_wrong_scale_is_seen(both) -> None:
    theirs, ours = both
    adapted = ours.stack.blocks[0].attention.branch.q
    right, adapted.scale = adapted.scale, adapted.scale * 1.01
    assert apart(ours.logits(IDS), theirs(IDS).logits) > 1e-4
    adapted.scale = right


def test_merged_is_pefts_merged(both) -> None:
    theirs, ours = both
    applied = ours.logits(IDS)
    merged = theirs.merge_and_unload()
    plain = merge(ours)
    assert apart(plain.logits(IDS), applied) < 1e-9
    assert apart(plain.logits(IDS), merged(IDS).logits) < 1e-6
    weight = merged.model.layers[1].mlp.down_proj.weight
    assert apart(plain.stack.blocks[1].feed_forward.branch.down.weight, weight) < 1e-9


def test_an_adapter_over_whole_numbers_is_the_adapter_over_what_they_stand_for(tmp_path) -> None:
    from orrery.families import load_family

    rules = load_family("llama")
    torch.manual_seed(0)
    model = Quantise(targets=("*.q", "*.k")).apply(rules.spec(rules.TINY).build().double())
    adapted = LoRA(targets=("*.q",)).apply(model)
    q = adapted.stack.blocks[0].attention.branch.q
    torch.nn.init.normal_(q.lora_b)
    x = torch.randn(3, q.in_features, dtype=torch.float64)
    by_hand = x @ (q.weight.double() * q.weight_scale.reshape(-1, 1)).T + q.scale * (x @ q.lora_a.T) @ q.lora_b.T
    assert apart(q(x), by_hand) < 1e-9
