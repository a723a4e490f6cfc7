"""Every view that fits opens on every family, with numbers that pass their checks: payloads of the page, without it."""

import json

import pytest
import torch

from orrery.families import names
from orrery.pages.page import Page
from orrery.views import find
from orrery.views import names as views
from orrery.views._payload import to_json
from orrery.views._view import fitting, shown
from views_toy import subject_of

RECURRENT = {"elman_rnn", "gru", "lstm", "nplm", "sutskever"}
ENCODERS = {"albert", "bert", "deberta", "deberta_v2", "distilbert", "electra", "modernbert", "roberta", "xlm_roberta"}
WITH_MEMORY = {"luong", "rnnenc", "rnnsearch"}
MIXTURES = {"gpt_oss", "mixtral", "olmoe", "qwen3_moe"}
KINDS = [
    (RECURRENT, {"attention", "heads", "qkv", "position", "cache", "neurons"}),
    (WITH_MEMORY, {"heads", "position", "cache", "neurons"}),
    (ENCODERS, {"cache", "decode", "neurons"}),
    (MIXTURES, {"neurons"}),
    ({"vit"}, {"cache", "decode", "neurons", "embedding", "lens", "logits", "planner", "saliency", "text"}),
    ({"vision_encoder_decoder"}, {"decode", "planner"}),
]
WITHOUT = {family: lacking for families, lacking in KINDS for family in families}
"""What a family has nothing to show for; everything else opens on it."""
OF_A_RUN = {"train", "trust"}
"""Screens of a run and of a file of laws, which no pass has."""


UNCHECKED = {"compare", "planner", "decode", "position"}
"""Views of which some payloads have no check: lists, plans, distributions behind a node, tables without a formula."""


@pytest.mark.parametrize("family", names())
def test_every_view_opens(family):
    subject = subject_of(family)
    opened = {view.kind for view in fitting(subject)}
    of_pass = {view for view in views() if find(view).screen not in OF_A_RUN}
    assert opened == of_pass - WITHOUT.get(family, set())
    for view in fitting(subject):
        for asked in view.saved(subject):
            given = asked.model_dump(exclude_none=True)
            payload = shown(view.kind, subject, given)
            assert [check for check in payload.checks if not check.passed] == [], (view.kind, given)
            json.loads(to_json(payload.facts))
            assert payload.checks or view.kind in UNCHECKED, (view.kind, given)
            assert payload.facts or payload.tensors
            for name, value in payload.tensors.items():
                # A score that a mask hides is minus infinity, and NaN stands where a text has nothing to measure.
                assert not value.isposinf().any() if value.is_floating_point() else True, (view.kind, name)
                assert value.numel() == 0 or not value.isnan().all() or view.kind == "heads", (view.kind, name)


@pytest.mark.parametrize("family", ["gpt2", "t5", "bert", "vit", "rnnsearch", "lstm", "vision_encoder_decoder"])
def test_a_pass_is_saved_as_one_page(family):
    html = Page(subject_of(family)).html()
    held = json.loads(html.split('id="held">')[1].split("</script>")[0])
    assert {view["kind"] for view in held["session"]["views"]} == {view.kind for view in fitting(subject_of(family))}


def test_patches_have_names():
    found = subject_of("vit").seen
    assert found.tokens[0] == "class"
    assert list(found.tokens[1:3]) == ["1·1", "1·2"]
    assert len(found.tokens) == found["embedded"].shape[1]
    captioner = subject_of("vision_encoder_decoder").seen
    assert captioner.source_tokens[0] == "class"
    assert [site.keys for site in captioner.sites] == ["source", "tokens", "source"]
    assert torch.isfinite(captioner.first.logits).all()
