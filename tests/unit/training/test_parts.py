"""Which layers processes compute together: what says nothing of itself, does not divide or is changed is refused."""

import pytest
import torch
from torch import nn

from orrery.errors import UsageError
from orrery.families import load_family, names, spec_of
from orrery.nn.parting import Grain, Parted
from orrery.nn.stack import Stack
from orrery.training.parallel.parts import parts_of
from orrery.tuning.lora import LoRA
from parted import even

HEADS = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}


def model(family: str = "llama", **more: object) -> nn.Module:
    rules = load_family(family)
    spec = spec_of(rules, even({**rules.TINY, **more}))
    with torch.device("meta"):
        return spec.build()


def test_the_bricks_of_a_model_are_found_by_their_paths() -> None:
    parts = parts_of(model("mixtral"), 2)
    assert "stack.blocks.0.attention.branch" in parts.bricks
    assert "stack.blocks.0.feed_forward.branch" in parts.rows
    assert "stack.blocks.1.feed_forward.branch.experts.3" in parts.inside
    assert "stack.blocks.0.attention.pre" in parts.tokens
    assert "stack.final" in parts.tokens


@pytest.mark.parametrize(
    ("family", "settings", "processes", "said"),
    [
        ("llama", HEADS, 4, r"tensor 4 does not divide the 2 heads of stack\.blocks\.0\.attention\.branch\.k"),
        ("llama", {**HEADS, "intermediate_size": 33}, 2, r"the 33 channels of stack.blocks.0.feed_forward.branch.gate"),
        ("gemma", {}, 2, r"does not divide the 1 heads of .*\.k"),
        ("mamba", {}, 2, r"stack.blocks.0.mixer.branch is a Mamba, which is not parted yet"),
        ("olmo2", {}, 2, r"attention.branch.q_norm is a RMSNorm, which needs the channels of all processes"),
        ("cohere", {}, 2, r"q_norm is a PerHeadNorm, which needs"),
        ("segformer", {}, 2, r"source is a ShortenedSource, which needs"),
        ("lstm", {}, 2, r"recurrence.branch is a LSTM"),
    ],
)
def test_what_is_not_parted_is_refused_by_its_path(
    family: str, settings: dict[str, object], processes: int, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as fault:
        parts_of(model(family, **settings), processes)
    assert "parallel.fsdp" in fault.value.hint
    assert ("would fit: 1" in fault.value.hint) is ("divide" in fault.value.message)


def test_adapters_and_a_model_without_a_stack_are_refused() -> None:
    rules = load_family("llama")
    adapted = spec_of(rules, rules.TINY).build()
    LoRA(rank=2).apply(adapted)
    with pytest.raises(UsageError, match="is a AdaptedLinear, no plain matrix"):
        parts_of(adapted, 2)
    with pytest.raises(UsageError, match="the model has no stack of blocks to part"):
        parts_of(nn.Linear(2, 2), 2)


@pytest.mark.parametrize("family", names())
def test_every_line_names_parts_that_are_there(family: str) -> None:
    for stack in (each for each in model(family).modules() if isinstance(each, Stack)):
        for module in stack.modules():
            line = getattr(type(module), "parting", None)
            assert line is None or isinstance(line, Parted | Grain)
            if isinstance(line, Parted):
                own = dict(module.named_parameters())
                assert {*line.columns, *line.rows} <= {name for name, _ in module.named_children()}
                assert all(
                    name in own or not list(module.get_submodule(name.partition(".")[0]).parameters())
                    for name in line.first
                )
                assert line.together is None or isinstance(getattr(module, line.together), int)
