"""Every view carries a check, and a check of a view sees a fault in the numbers that it speaks of."""

import pytest
import torch

import orrery
from orrery.exchange.exporting.export import export_gguf
from orrery.inspection.attribution.rerun import Rerun
from orrery.inspection.interventions.interventions import Interventions
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject, fitting, shown
from orrery.training.operations import multiplied_parameters
from orrery.tuning import matrices_kept, matrix_of, numbers_of
from views_toy import language_model_of, subject_of

WAYS = ("gradient", "gradient_times_input", "integrated")


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_checked_against_the_score_itself(way, monkeypatch):
    subject = subject_of("gpt2")
    (check,) = shown("saliency", subject, {"method": way}).checks
    assert check.passed
    right = Rerun.gradients
    monkeypatch.setattr(Rerun, "gradients", lambda run, at: tuple(1.5 * one for one in right(run, at)))
    (check,) = shown("saliency", subject, {"method": way}).checks
    assert not check.passed


def test_scores_of_16_bits_have_no_slope():
    subject = subject_of("gpt2", dtype=torch.bfloat16)
    checks = [shown("saliency", subject, {"method": way}).checks[0] for way in WAYS]
    assert [check.name.split()[0] for check in checks] == ["what", "what", "integrated"]
    assert all(check.passed for check in checks[:2])  # the third says by how much 16 bits miss the sum


@pytest.mark.parametrize("family", ["gpt2", "gpt_oss", "t5", "deepseek_v3"])
@pytest.mark.parametrize(("view", "layer"), [("heads", {}), ("attention", {"layer": 1})])
def test_roles_and_pictures_are_those_of_rows_that_sum_to_one(family, view, layer, monkeypatch):
    subject = subject_of(family)
    assert shown(view, subject, {"site": 0, **layer}).checks[0].passed
    right = Inside.__getitem__

    def longer(self, key):
        return right(self, key) * (1.001 if key.endswith("1.attention.pattern") else 1)

    monkeypatch.setattr(Inside, "__getitem__", longer)
    assert not shown(view, subject, {"site": 0, **layer}).checks[0].passed


@pytest.mark.parametrize("view", ["logits", "neurons"])
def test_parts_of_a_long_text_need_no_patterns(view, monkeypatch):
    whole = subject_of("gpt2")
    monkeypatch.setattr("orrery.page.views._inside.BUDGET", 1)
    small, asked, right = Inside(whole.lm, whole.seen.given), [], Interventions.run
    monkeypatch.setattr(Interventions, "run", lambda self, keep=("*",): asked.append(list(keep)) or right(self, keep))
    payload = shown(view, ViewSubject(whole.lm, small), {})
    assert asked
    assert not [key for keep in asked for key in keep if key.endswith((".scores", ".pattern")) or key == "*"]
    assert payload.to_bytes() == shown(view, whole, {}).to_bytes()


@pytest.mark.parametrize("family", ["gpt2", "bert", "transformer", "rnnsearch", "lstm", "granite", "gptj", "albert"])
def test_each_stream_follows_from_the_one_before(family):
    subject = subject_of(family)
    checks = shown("residual", subject, {}).checks
    assert all(check.passed for check in checks[:2])  # the third says by how much 16 bits miss the sum
    assert "each stream is the one before and what was added, through the norm" in {check.name for check in checks}
    inside = Inside(subject.lm, subject.seen.given)
    broken = dict(inside.first.values)
    key = next(key for key in reversed(broken) if key.startswith("blocks.") and key.endswith(".added"))
    broken[key] = broken[key] + 0.01 * torch.eye(broken[key].shape[-1])[0]  # a norm takes away what all channels share
    object.__setattr__(inside.first, "values", broken)
    assert not shown("residual", ViewSubject(subject.lm, inside), {}).checks[-1].passed


def test_a_stream_that_an_edit_replaced_follows_from_nothing():
    subject = subject_of("bert")
    edited = Inside(subject.lm, subject.seen.given, [{"at": "blocks.0.resid_post", "op": "scale", "scale": 2.0}])
    assert shown("residual", ViewSubject(subject.lm, edited), {}).checks == []


def test_a_file_of_blocks_is_shown_in_its_numbers_and_every_check_passes(tmp_path):
    plain = language_model_of("llama", hidden_size=64, intermediate_size=96, num_attention_heads=2)
    file = export_gguf(plain.stored, tmp_path / "x.gguf", "q8_0").path
    lm = orrery.load(file, "cpu", say=str)
    assert lm.model.embed.token.weight.dtype == torch.uint8
    subject = ViewSubject(lm, Inside(lm, {"text": "the cat sat on"}))
    told = {
        view.kind: [shown(view.kind, subject, dict(asked)) for asked in view.saved(subject)]
        for view in fitting(subject)
    }
    assert [check for payloads in told.values() for one in payloads for check in one.checks if not check.passed] == []
    assert told["planner"][0].facts["numbers"] == told["parameters"][0].facts["numbers"] == numbers_of(plain.model)
    assert multiplied_parameters(lm.model) == multiplied_parameters(plain.model)
    name = "stack.blocks.0.feed_forward.branch.up.weight"
    shapes = {one["path"]: one["shape"] for one in told["parameters"][0].facts["matrices"]}
    assert shapes[name] == (96, 64)
    cells = shown("parameters", subject, {"matrix": name}).tensors["cells"]
    torch.testing.assert_close(cells, matrix_of(lm.model.get_submodule(name.removesuffix(".weight"))))


def test_what_is_unpacked_for_a_page_is_kept_within_its_bytes(tmp_path):
    plain = language_model_of("llama", hidden_size=64, intermediate_size=96, num_attention_heads=2)
    lm = orrery.load(export_gguf(plain.stored, tmp_path / "x.gguf", "q8_0").path, "cpu", say=str)
    up, down = (getattr(lm.model.stack.blocks[0].feed_forward.branch, name) for name in ("up", "down"))
    size = 96 * 64 * 4
    with matrices_kept(size):
        first = matrix_of(up)
        assert matrix_of(up) is first
        assert matrix_of(down) is not matrix_of(down)
    assert matrix_of(up) is not first
    assert torch.equal(matrix_of(up), first)
