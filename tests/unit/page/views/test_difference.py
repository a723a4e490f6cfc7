"""Edited less clean, in every view that allows it: the numbers are those of two traces, and no edit gives zeros."""

import pytest
import torch

import orrery
from orrery.errors import UsageError
from orrery.inspection.difference import difference
from orrery.page.passes import Passes
from orrery.page.views._difference import by_name, less
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import ViewSubject, fitting, shown
from tiny_models import saved

GIVEN = {
    "gpt2": {"text": "the cat sat on the mat"},
    "llama": {"text": "the cat sat on the mat"},
    "bert": {"text": "the cat sat on the mat"},
    "rnnsearch": {"source": "the cat sat", "target": "the dog"},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return {
        family: orrery.load(
            saved(tmp_path_factory.mktemp(family) / "model", family), "cpu", dtype="float64", say=lambda line: None
        )
        for family in GIVEN
    }


def scaled_of(inside):
    return next(key for key in inside.shapes if key.endswith((".mixed", ".state")))


def both(models, family, scale):
    """Return a pass in which a tensor is scaled, and the clean one."""
    clean = Inside(models[family], GIVEN[family])
    edits = [{"at": scaled_of(clean), "op": "scale", "scale": scale}]
    return ViewSubject(clean.lm, Inside(clean.lm, GIVEN[family], edits)), ViewSubject(clean.lm, clean)


def asked_of(view, subject):
    return [asked.model_dump(exclude_none=True) for asked in view.saved(subject)][:4]


@pytest.mark.parametrize("family", GIVEN)
def test_an_edit_that_changes_nothing_shows_zero_everywhere(models, family):
    edited, clean = both(models, family, 1.0)
    views = [view for view in fitting(clean) if view.compares]
    assert views
    for view in views:
        for asked in asked_of(view, clean):
            payload = shown(view.kind, edited, asked, clean)
            assert payload.facts["difference"]
            for name, value in payload.tensors.items():
                if name in view.apart or name.startswith("clean.") or not value.is_floating_point():
                    other = payload.tensors.get("clean." + name, value)
                    assert torch.equal(value, other), (view.kind, name)
                else:
                    assert not value.any(), (view.kind, asked, name)


@pytest.mark.parametrize("family", GIVEN)
def test_the_difference_is_that_of_what_the_two_passes_show(models, family):
    edited, clean = both(models, family, 0.5)
    moved = 0
    for view in fitting(clean):
        if not view.compares:
            continue
        for asked in asked_of(view, clean):
            payload = shown(view.kind, edited, asked, clean)
            same = view.aligned(edited, clean, view.Settings(**asked))
            one, other = by_name([view.payload(subject, same) for subject in (edited, clean)], view.named_rows)
            for name, value in payload.tensors.items():
                if name in one.tensors and value.is_floating_point() and name not in view.apart and name != "pictures":
                    wanted = one.tensors[name].double() - other.tensors[name].double()
                    torch.testing.assert_close(value.double(), wanted.nan_to_num(), rtol=0, atol=2e-3)
                    moved += int(bool(value.any()))
    assert moved


def test_patterns_and_words_are_those_of_two_traces(models):
    lm, text = models["gpt2"], GIVEN["gpt2"]["text"]
    edits = [{"at": "blocks.0.attention.mixed", "op": "zero", "head": 1}]
    clean, edited = Inside(lm, {"text": text}), Inside(lm, {"text": text}, edits)
    before = lm.trace(text)
    after = before.edit(edits).run()
    wanted = difference(before, after)
    subjects = ViewSubject(lm, edited), ViewSubject(lm, clean)
    pattern = shown("attention", subjects[0], {"layer": 1}, subjects[1]).tensors["pattern"]
    assert torch.equal(pattern, wanted.patterns()["blocks.1.attention.pattern"][0].half())
    pictures = shown("attention", subjects[0], {}, subjects[1]).tensors["pictures"]
    assert torch.equal(pictures[1], pattern)
    payload = shown("logits", subjects[0], {"position": -1}, subjects[1])
    assert payload.facts["kl"] == pytest.approx(float(wanted.kl_BL[0, -1]), rel=1e-12)
    assert payload.facts["turned"] == len(wanted.turned)
    ids = payload.tensors["id"].tolist()
    for one in wanted.top(count=5):
        place = ids.index(one.id)
        assert float(payload.tensors["clean.log_probability"][place].exp()) == pytest.approx(one.clean, abs=1e-6)
        assert float(payload.tensors["log_probability"][place].exp()) == pytest.approx(one.edited, abs=1e-6)


@pytest.mark.parametrize("kind", ["logits", "neurons", "saliency", "lens", "residual", "heads"])
def test_views_show_a_pass_whose_stream_was_replaced(models, kind):
    lm, text = models["gpt2"], GIVEN["gpt2"]["text"]
    edits = [{"at": "blocks.0.resid_post", "op": "scale", "scale": 0.5}]
    edited, clean = (ViewSubject(lm, Inside(lm, {"text": text}, given)) for given in (edits, []))
    payload = shown(kind, edited, {"layer": 1} if kind == "neurons" else {}, clean)
    assert payload.facts["difference"]
    if kind == "logits":  # the parts do not sum any more, and the view says why
        assert payload.facts["parts"] == []
        assert "replaced the stream" in payload.facts["notes"][0]


def test_a_large_pattern_shows_the_greatest_change_of_each_cell_with_its_sign(monkeypatch):
    from orrery.page.views import attention

    change = torch.zeros(1, 8, 8)
    change[0, 1, 1], change[0, 0, 0] = -0.5, 0.25
    change[0, 7, 6] = 0.125
    monkeypatch.setattr(attention, "SIDE", 4)
    small = attention._changed(change)
    assert small.shape == (1, 4, 4)
    assert (float(small[0, 0, 0]), float(small[0, 3, 3]), int(small.count_nonzero())) == (-0.5, 0.125, 2)


def test_a_long_text_shows_the_greatest_change_of_each_cell_a_band_at_a_time(models, monkeypatch):
    monkeypatch.setattr("orrery.page.views.attention.LONG", 2)
    monkeypatch.setattr("orrery.page.views.attention.TILE", 4)
    lm, text = models["gpt2"], GIVEN["gpt2"]["text"]
    edits = [{"at": "blocks.0.attention.mixed", "op": "zero", "head": 1}]
    edited, clean = (ViewSubject(lm, Inside(lm, {"text": text}, given)) for given in (edits, []))
    payload = shown("attention", edited, {"layer": 1, "head": 1}, clean)
    change = edited.seen["blocks.1.attention.pattern"][0, 1] - clean.seen["blocks.1.attention.pattern"][0, 1]
    up, down = (torch.nn.functional.adaptive_max_pool2d(one[None], (4, 4))[0] for one in (change, -change))
    assert set(payload.tensors) == {"tile", "overview"}
    torch.testing.assert_close(
        payload.tensors["overview"].double(), torch.where(up >= down, up, -down), rtol=1e-3, atol=1e-4
    )
    assert float(payload.tensors["overview"].min()) < 0 < float(payload.tensors["overview"].max())
    small = shown("attention", edited, {}, clean).tensors["pictures"]
    after, before = (one.seen.thumbnails.pictures["blocks.1.attention.pattern"][0] for one in (edited, clean))
    torch.testing.assert_close(small[1].double(), after - before, rtol=1e-3, atol=1e-3)


def test_what_cannot_be_compared_is_refused_by_name(models):
    lm = models["gpt2"]
    one, longer = (ViewSubject(lm, Inside(lm, {"text": text})) for text in ("the cat", "the cat sat on"))
    with pytest.raises(UsageError, match=r"pattern is .* compare passes of one length"):
        shown("attention", one, {"layer": 0}, longer)
    with pytest.raises(UsageError, match="the view text has no difference"):
        shown("text", one, {}, one)
    with pytest.raises(UsageError, match="no channel 999"):
        shown("neurons", one, {"channels": "0,999"})
    with pytest.raises(UsageError, match="no list of numbers"):
        shown("logits", one, {"named": "a"})
    with pytest.raises(UsageError, match="outside the vocabulary"):
        shown("logits", one, {"named": "-1"})


def test_the_worse_of_two_checks_is_told():
    from orrery.inspection.checks import Check

    checks = [Check("a", 0.5, 1.0), Check("a", float("nan"), 1.0)]
    for pair in (checks, checks[::-1]):
        (worse,) = less(Payload({}, checks=pair[:1]), Payload({}, checks=pair[1:])).checks
        assert not worse.passed


def test_the_same_edits_are_computed_once(models, monkeypatch):
    passes = Passes(models["gpt2"])
    edits = [{"at": "blocks.0.resid_post", "op": "zero"}]
    first = passes.open({"text": "the cat"}, edits)
    assert passes.open({"text": "the cat"}, edits) is first
    assert passes.open({"text": "the cat"}) is not first
    shown_of = passes.show(first.id, "residual", {"difference": passes.open({"text": "the cat"}).id})
    assert shown_of.tensors["stream"].any()
    monkeypatch.setattr("orrery.page.passes.MOST", 1)
    passes.open({"text": "a dog"})
    assert passes.open({"text": "the cat"}, edits) is not first


def test_what_cutting_an_edge_does_is_measured(models):
    """The effect of an edge is the divergence of a trace in which it is masked."""
    from orrery.inspection.difference import divergence

    lm, text = models["gpt2"], GIVEN["gpt2"]["text"]
    asked = {"layer": 0, "head": 1, "query": 4, "causal": True}
    effect = shown("attention", ViewSubject(lm, Inside(lm, {"text": text})), asked).tensors["effect"]
    clean = lm.trace(text)
    for place in range(5):
        cut = clean.edit().mask("blocks.0.attention.scores", head=1, position=4, key=place).run()
        assert float(effect[place]) == pytest.approx(
            float(divergence(clean.logits, cut.logits)[0, 4]), rel=1e-5, abs=1e-9
        )
    assert effect[5:].isnan().all()
