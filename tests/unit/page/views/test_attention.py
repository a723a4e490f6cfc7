import pytest
import torch

import orrery
from orrery.errors import UsageError
from orrery.inspection.thumbnails import Thumbnails
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject, shown
from tiny_models import saved


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    lm = orrery.load(saved(tmp_path_factory.mktemp("m") / "model", "llama"), "cpu", say=lambda line: None)
    return ViewSubject(lm, Inside(lm, {"text": "the cat sat on the mat"}))


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    lm = orrery.load(saved(tmp_path_factory.mktemp("m") / "model", "rnnsearch"), "cpu", say=lambda line: None)
    return ViewSubject(lm, Inside(lm, {"source": "the cat sat", "target": "the dog"}))


def test_the_patterns_of_a_block_are_the_traces(subject):
    for layer in (0, 1):
        sent = shown("attention", subject, {"layer": layer}).tensors["pattern"]
        kept = subject.seen[f"blocks.{layer}.attention.pattern"][0]
        assert sent.dtype == torch.float16
        assert (sent.float() - kept).abs().max() <= 2**-11


def test_small_pictures_hold_the_largest_weight_of_each_of_their_cells(subject, monkeypatch):
    monkeypatch.setattr("orrery.page.views._inside.Thumbnails", lambda: Thumbnails(side=4))
    small = ViewSubject(subject.lm, Inside(subject.lm, subject.seen.given))
    pictures = shown("attention", small, {}).tensors["pictures"]
    kept = subject.seen["blocks.1.attention.pattern"][0, 2]
    size = kept.shape[0]
    assert pictures.shape == (2, 4, 4, 4)
    assert size > 4
    corner = kept[: -(-size // 4), : -(-size // 4)].max().sqrt() * 255
    assert abs(int(pictures[1, 2, 0, 0]) - float(corner)) <= 1
    wanted = torch.nn.functional.adaptive_max_pool2d(kept[None], (4, 4))[0]
    assert torch.equal(small.seen.thumbnails.pictures["blocks.1.attention.pattern"][0, 2], wanted)


def test_pieces_make_the_same_small_pictures_rows_and_patterns(subject, monkeypatch):
    """What is made a piece at a time, as of long texts, is what the whole pattern gives, bit for bit."""
    whole, key = subject.seen, "blocks.1.attention.pattern"
    monkeypatch.setattr("orrery.inspection.definition.LARGEST", 40)
    pieces = Inside(subject.lm, subject.seen.given)
    for one, small in pieces.thumbnails.pictures.items():
        torch.testing.assert_close(small, whole.thumbnails.pictures[one], rtol=0, atol=1e-7)
    assert pieces.thumbnails.off[key] <= 1e-6
    torch.testing.assert_close(pieces[key], whole[key], rtol=0, atol=1e-7)
    torch.testing.assert_close(pieces.rows(key, 2, slice(3, 6)), whole[key][0, 2, 3:6], rtol=0, atol=1e-7)
    kept = subject.lm.trace(subject.seen.given["text"])[key]
    assert torch.equal(pieces[key], kept)


def test_a_long_text_is_shown_by_tiles_and_an_overview(subject, monkeypatch):
    monkeypatch.setattr("orrery.page.views.attention.LONG", 2)
    monkeypatch.setattr("orrery.page.views.attention.TILE", 4)
    kept = subject.seen["blocks.1.attention.pattern"][0, 2]
    payload = shown("attention", subject, {"layer": 1, "head": 2, "row": 5, "column": 3})
    assert payload.facts["long"]
    assert (payload.facts["row"], payload.facts["column"]) == (4, 0)
    assert torch.equal(payload.tensors["tile"], kept[4:8, :4].half())
    wanted = torch.nn.functional.adaptive_max_pool2d(kept[None], (4, 4))[0]
    assert torch.equal(payload.tensors["overview"], wanted.half())
    assert all(check.passed for check in payload.checks)
    with pytest.raises(UsageError, match="no head 9"):
        shown("attention", subject, {"layer": 1, "head": 9})


def test_what_takes_too_much_is_refused_by_name_before_it_runs(subject, monkeypatch):
    monkeypatch.setattr("orrery.page.views._inside.MOST", 1 << 10)
    with pytest.raises(UsageError, match=r"to look into 6 tokens takes .* at most") as error:
        Inside(subject.lm, subject.seen.given)
    assert "keep less" in error.value.hint


def test_a_row_has_scores_weights_and_values(subject):
    payload = shown("attention", subject, {"layer": 1, "head": 3, "query": 5})
    score, weight, value = (payload.tensors[name] for name in ("score", "weight", "value"))
    assert torch.equal(score, subject.seen["blocks.1.attention.scores"][0, 3, 5])
    torch.testing.assert_close(score.softmax(-1), weight)
    v = subject.seen["blocks.1.attention.v"][0, 1]  # the second of two key-value heads serves heads 2 and 3
    torch.testing.assert_close(value, weight * v.norm(dim=-1))
    assert payload.checks[0].value <= 1e-5


def test_the_check_of_a_row_sees_wrong_weights(subject):
    inside = Inside(subject.lm, subject.seen.given)
    broken = dict(inside.first.values)
    broken["blocks.1.attention.pattern"] = inside["blocks.1.attention.pattern"].roll(1, -1)
    object.__setattr__(inside.first, "values", broken)
    (check,) = shown("attention", ViewSubject(subject.lm, inside), {"layer": 1, "head": 3, "query": 5}).checks
    assert not check.passed


def test_an_edit_of_what_a_head_puts_out_leaves_no_false_check(subject):
    edits = [{"at": "blocks.1.attention.mixed", "op": "zero", "head": 3}]
    edited = ViewSubject(subject.lm, Inside(subject.lm, subject.seen.given, edits))
    for asked in ({"layer": 1}, {"layer": 1, "head": 3, "query": 5}):
        assert all(check.passed for check in shown("attention", edited, asked).checks)
    assert len(shown("attention", edited, {"layer": 0}).checks) == 2


def test_an_encoder_decoder_has_an_attention_over_its_source(translator):
    (site,) = translator.seen.sites
    assert (site.queries, site.keys) == ("tokens", "source")
    pattern = shown("attention", translator, {"layer": site.layers[0]}).tensors["pattern"]
    assert pattern.shape[1:] == (len(translator.seen.tokens), len(translator.seen.source_tokens))
