"""A model and a trace are shown as trees of bounded length that a person can read."""

import pytest
import torch
from torch import nn

import orrery
from orrery.inspection.trace import trace
from orrery.laws.models import spec_of, tiny
from orrery.models.meta_device import build_on_meta
from orrery.models.shown import LINES, shown
from tiny_models import saved


def test_a_model_is_a_tree_with_sizes_and_parameters():
    model = tiny("llama", torch.float32)
    first, *lines = repr(model).splitlines()
    count = sum(parameter.numel() for parameter in model.parameters())
    assert first == f"Decoder: {count:,} parameters, context {model.spec.context}, float32 on cpu"
    assert lines[0].startswith("  embed: TokenEmbedding")
    assert "    blocks: ModuleList" in repr(model)
    (blocks,) = [line.strip() for line in lines if " Block " in line]
    size = sum(parameter.numel() for parameter in model.stack.blocks[0].parameters())
    assert blocks == f"0-1: Block  [2 x {size:,}]"
    assert any(line.strip().startswith(f"up: Linear({model.spec.width} -> ") for line in lines)
    assert "Identity" not in repr(model)


def test_blocks_that_differ_stand_apart():
    text = repr(tiny("bamba"))
    assert "0: Block" in text
    assert "1: Block" in text
    assert "0-1: Block" not in text


@pytest.mark.parametrize("family", ["deberta_v2", "vision_encoder_decoder", "qwen3_next", "t5"])
def test_no_model_has_more_lines_than_a_screen(family):
    lines = repr(build_on_meta(spec_of(family))).splitlines()
    assert 5 < len(lines) <= LINES
    assert max(map(len, lines)) <= 120


def test_every_part_of_the_first_level_is_named_where_there_is_no_room_for_more():
    wide = nn.ModuleDict({f"part {n}": nn.Linear(1, n + 1) for n in range(60)})
    assert len(shown(wide, "wide").splitlines()) == LINES
    assert shown(wide, "wide").endswith("and 22 more")
    deep = nn.ModuleDict({f"part {n}": nn.Sequential(nn.Linear(1, n + 1), nn.Linear(n + 1, 1)) for n in range(20)})
    assert [line.strip().partition(":")[0] for line in shown(deep, "deep").splitlines()[1:]] == [*deep]


def test_a_trace_names_what_is_kept_and_reads_nothing_from_the_disk(tmp_path):
    model, ids = tiny("llama"), torch.tensor([[1, 2, 3]])
    inside = trace(model, ids)
    first, *lines = repr(inside).splitlines()
    assert first == f"Trace of a Decoder: read [1, 3], gave logits {list(inside.logits.shape)}"
    assert f"  checks: {len(inside.checks)} of {len(inside.checks)} pass" in lines
    assert f"  {len(inside.values)} values:" in lines
    shape = list(inside["blocks.0.attention.pattern"].shape)
    assert f"    blocks.0-1.attention.pattern  {shape}" in lines
    on_disk = repr(trace(model, ids, folder=tmp_path / "kept"))
    assert "    blocks.0-1.attention.pattern\n" in on_disk


def test_a_long_trace_is_cut_and_a_check_that_fails_is_named():
    inside = trace(tiny("deepseek_v3"), torch.arange(9)[None])
    assert len(repr(inside).splitlines()) <= LINES
    broken = [check.__class__(check.name, 1.0, 0.5) for check in inside.checks]
    failed = inside.__class__(inside.ids, inside.call, inside.logits, inside.values, broken)
    assert f"0 of {len(broken)} pass; failed: {broken[0].name}" in repr(failed)


def test_a_language_model_says_where_it_comes_from(tmp_path):
    lm = orrery.load(saved(tmp_path / "model", "llama"))
    first, second, *_ = repr(lm).splitlines()
    assert first == f"LanguageModel llama from {lm.folder}, tokenizer of {lm.tokenizer.size:,} ids"
    assert second.startswith("Decoder: ")
