"""The logit lens: its last row is the model, every row is the head's own reading of a stream."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.trace import trace
from tiny_models import inputs_for, smallest

FAMILIES = [
    "gpt2",
    "llama",
    "gemma2",
    "opt",
    "mixtral",
    "bert",
    "albert",
    "modernbert",
    "bart",
    "t5",
    "lstm",
    "rnnsearch",
    "vision_encoder_decoder",
]


def looked(family, dtype=torch.float64, **call):
    model = smallest(family, dtype)
    return trace(model, *inputs_for(model), **call)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_row_is_the_model_bit_for_bit(family, dtype):
    traced = looked(family, dtype)
    lens = traced.lens(k=3)
    assert (lens.check.value, lens.check.passed) == (0, True)
    assert len(lens.names) == 1 + len(traced.model.stack.order)
    log_BLV = traced.logits.to(torch.promote_types(dtype, torch.float32)).log_softmax(-1)
    assert torch.equal(lens.log_probability_NBLK[-1], log_BLV.topk(3).values)
    assert torch.equal(lens.log_probability_NBLK[-1], log_BLV.gather(-1, lens.id_NBLK[-1]))


def test_every_row_is_what_the_head_reads_there():
    traced = looked("gpt2")
    lens = traced.lens(k=4, target=9)
    for row, name in enumerate(["embedded", "blocks.0.resid_post", "blocks.1.resid_post"]):
        assert lens.names[row] == name
        probability_BLV = traced.model.head(traced.model.stack.final(traced[name])).softmax(-1).detach()
        log_BLV = probability_BLV.log()
        torch.testing.assert_close(lens.target_log_probability_NBL[row], log_BLV[..., 9])
        assert torch.equal(lens.target_rank_NBL[row], (log_BLV > log_BLV[..., 9:10]).sum(-1))
        torch.testing.assert_close(lens.entropy_NBL[row], -(probability_BLV * log_BLV).sum(-1))
        assert torch.equal(lens.id_NBLK[row], log_BLV.topk(4).indices)


def test_the_token_in_question_is_the_next_or_the_masked_one():
    traced = looked("gpt2")
    lens = traced.lens()
    assert torch.equal(lens.target_BL[:, :-1], traced.ids[:, 1:])
    assert bool((lens.target_BL[:, -1] == -1).all())
    assert bool(lens.target_log_probability_NBL[..., -1].isnan().all())
    assert bool((lens.target_rank_NBL[..., -1] == -1).all())
    log_BLV = traced.logits.log_softmax(-1)
    expected = log_BLV[:, :-1].gather(-1, traced.ids[:, 1:, None])[..., 0]
    torch.testing.assert_close(lens.target_log_probability_NBL[-1, :, :-1], expected)
    masked = looked("bert")
    assert torch.equal(masked.lens().target_BL, masked.ids)
    written = looked("t5")
    assert torch.equal(written.lens().target_BL[:, :-1], written.ids[:, 1:])


def test_the_logits_of_one_layer_are_in_memory(monkeypatch):
    import weakref

    from orrery.inspection.attribution import lens as module

    row, alive, most = module._row, [], []

    def counted(logits_BLV, *others):
        alive.append(weakref.ref(logits_BLV))
        most.append(sum(one() is not None for one in alive))
        return row(logits_BLV, *others)

    monkeypatch.setattr(module, "_row", counted)
    looked("gpt2").lens()
    assert most == [1, 1, 1] or max(most) <= 2


def test_the_check_sees_another_model():
    traced = looked("gpt2")
    with torch.no_grad():
        traced.model.stack.final.bias[0] += 1e-9
    assert not traced.lens().check.passed


def test_what_has_no_lens_is_refused():
    with pytest.raises(UsageError, match="scores no vocabulary: its main head is a SequenceHead") as error:
        looked("vit").lens()
    assert "decoder" in error.value.hint
    with pytest.raises(UsageError, match=r"needs 'blocks\.1\.resid_post'"):
        looked("gpt2", keep=["embedded", "blocks.0.*"]).lens()
    with pytest.raises(UsageError, match="token -1 of a vocabulary"):
        looked("gpt2").lens(target=-1)
