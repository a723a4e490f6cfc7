"""The stream as a sum: every family's parts add up, each is what the model loses without it, breaks are seen."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.trace import trace
from orrery.tuning.bottleneck import Bottleneck
from orrery.tuning.lora import LoRA
from tiny_models import inputs_for, randomised, smallest, tiny

# Plain, grouped, parallel, sandwich, factors, latent, experts, post-LN, a block in a sum, sources, images, recurrences.
FAMILIES = [
    "gpt2",
    "llama",
    "gptj",
    "falcon",
    "gemma2",
    "granite",
    "deepseek_v2",
    "mixtral",
    "gpt_oss",
    "qwen3_next",
    "bloom",
    "olmo2",
    "opt",
    "bert",
    "deberta_v2",
    "bart",
    "mbart",
    "t5",
    "vision_encoder_decoder",
    "vit",
    "lstm",
    "rnnsearch",
]


def looked(family, dtype=torch.float64, **call):
    model = smallest(family, dtype)
    return trace(model, *inputs_for(model), **call)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_parts_sum_to_the_stream(family):
    traced = looked(family)
    parts = traced.parts(None)
    assert parts.check.value < 1e-12
    assert parts.check.passed
    last = traced[f"blocks.{len(traced.model.stack.order) - 1}.resid_post"]
    torch.testing.assert_close(parts.value_NBPD.sum(0), last, rtol=0, atol=1e-12)
    assert len(set(parts.names)) == len(parts.names)
    one = traced.parts(2)
    assert one.positions == [2]
    torch.testing.assert_close(one.value_NBPD[:, :, 0], parts.value_NBPD[:, :, 2], rtol=0, atol=1e-14)


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "bart"])
def test_the_parts_sum_in_float32(family):
    assert looked(family, torch.float32).parts(None).check.value < 1e-6


def test_the_names_of_the_parts():
    parts = looked("gpt2").parts()
    heads = [f"blocks.0.attention.head.{h}" for h in range(3)]
    assert parts.names[:7] == [
        "embedded.token",
        "embedded.position",
        *heads,
        "blocks.0.attention.bias",
        "blocks.0.feed_forward.added",
    ]
    assert parts.notes == []
    crossed = looked("t5").parts()
    assert {"blocks.0.cross.head.0", "blocks.0.attention.head.2", "blocks.0.feed_forward.added"} < set(crossed.names)
    assert "blocks.0.attention.bias" not in crossed.names
    assert "blocks.0.feed_forward.added" in looked("mixtral").parts().names
    assert {"blocks.0.attention.head.0", "blocks.0.feed_forward.added"} < set(looked("gptj").parts().names)
    assert looked("llama").parts().names[:2] == ["embedded.token", "blocks.0.attention.head.0"]


@pytest.mark.parametrize("family", ["gpt2", "llama", "deepseek_v2", "gptj"])
def test_a_head_is_what_is_missing_where_it_is_set_to_zero(family):
    def without(value, key):
        value = value.clone()
        value[:, 1] = 0
        return value

    whole, less = looked(family), looked(family, edit={"blocks.0.attention.mixed": without})
    key = "blocks.0.parallel.added" if family == "gptj" else "blocks.0.attention.added"
    head = whole.parts(None)["blocks.0.attention.head.1"]
    torch.testing.assert_close(head, whole[key] - less[key], rtol=0, atol=1e-12)
    assert less.parts(None)["blocks.0.attention.head.1"].abs().max() == 0
    assert less.parts(None).check.passed


def test_the_embedding_is_the_tables_rows():
    traced = looked("gpt2")
    parts = traced.parts(None)
    embed, positions = traced.model.embed.token, traced.model.stack.positions["learned"]
    torch.testing.assert_close(parts["embedded.token"], embed(traced.ids).detach(), rtol=0, atol=1e-15)
    table_LD = next(positions.parameters())[:7].detach()
    torch.testing.assert_close(parts["embedded.position"][0], table_LD, rtol=0, atol=1e-12)


def test_norms_on_the_stream_are_said():
    parts = looked("bert").parts()
    assert "norms or factors act on the stream itself" in parts.notes[-1]
    assert {"embedded.bias", "blocks.0.attention.norm_bias", "blocks.0.attention.head.0"} < set(parts.names)
    assert looked("gemma2").parts().notes == []


def test_what_cannot_be_taken_apart_is_one_part_and_says_so():
    recurrent = looked("rnnsearch").parts()
    assert recurrent.names == ["blocks.0.cross.added"]
    assert any("blocks.0.cross is a BahdanauDecoder" in note for note in recurrent.notes)
    model = randomised(Bottleneck(size=3).apply(tiny("gpt2")))
    parts = trace(model, *inputs_for(model)).parts()
    assert parts.check.passed
    assert "blocks.0.attention.added" in parts.names
    assert any("BottleneckNetwork" in note for note in parts.notes)


def test_heads_of_an_adapted_output_are_those_of_the_whole_matrix():
    model = randomised(LoRA(rank=2, targets=("*.out",)).apply(tiny("gpt2")))
    assert trace(model, *inputs_for(model)).parts(None).check.value < 1e-12


def test_an_edit_of_what_is_added_is_one_part():
    traced = looked("gpt2", edit={"blocks.0.attention.added": lambda x, key: 2 * x})
    parts = traced.parts()
    assert "blocks.0.attention.head.0" not in parts.names
    assert "blocks.0.attention.added is one part: an edit replaced it" in parts.notes
    assert parts.check.passed
    assert looked("gpt2", edit={"embedded": lambda x, key: 2 * x}).parts().names[0] == "embedded"


def test_an_edited_stream_has_no_parts():
    traced = looked("gpt2", edit={"blocks.0.resid_post": lambda x, key: 2 * x})
    with pytest.raises(UsageError, match="an edit replaced the stream"):
        traced.parts()


def test_what_is_not_there_is_refused():
    traced = looked("gpt2", keep=["blocks.*.resid*", "*added", "*hidden", "looked_up", "positioned", "embedded"])
    with pytest.raises(UsageError, match=r"needs 'blocks\.0\.attention\.mixed'") as error:
        traced.parts()
    assert "keep=[..., 'blocks.0.attention.mixed']" in error.value.hint
    whole = looked("gpt2")
    with pytest.raises(UsageError, match="position 7 of 7"):
        whole.parts(7)
    with pytest.raises(UsageError, match="no part is called 'x'"):
        whole.parts()["x"]


@pytest.mark.parametrize("broken", ["blocks.0.attention.branch.out.weight", "blocks.1.attention.branch.out.bias"])
def test_the_check_sees_a_part_of_another_model(broken):
    traced = looked("gpt2", torch.float32)
    assert traced.parts().check.passed
    with torch.no_grad():
        traced.model.stack.get_parameter(broken).mul_(1.01)
    assert not traced.parts().check.passed
