"""Every view that fits opens on every family, with numbers that pass their checks: payloads of the page, without it."""

import json

import pytest
import torch

from orrery.families import names
from orrery.inspection.attribution.sublayers import FEED_FORWARDS
from orrery.language_model.load import load
from orrery.nn.mixer import StatefulMixer
from orrery.page.page import Page
from orrery.page.views import find
from orrery.page.views import names as views
from orrery.page.views._inside import Inside
from orrery.page.views._payload import to_json
from orrery.page.views._view import ViewSubject, fitting, shown
from orrery.page.views.classes import head_of_classes
from orrery.page.views.way import stations_of
from serving_toy import chat_model
from tests.goldens.cases import IMAGES
from views_toy import TOKENIZER, language_model_of, subject_of

ENCODERS = {
    *(
        "albert",
        "bert",
        "camembert",
        "deberta",
        "deberta_v2",
        "distilbert",
        "electra",
        "modernbert",
        "mpnet",
        "roberta",
    ),
    *("xlm_roberta", "xlm_roberta_xl"),
}
WITH_MEMORY = {"luong", "rnnenc", "rnnsearch"}
MIXTURES = {
    *("gpt_oss", "granitemoe", "granitemoehybrid", "minimax_m2", "mixtral", "olmoe", "phimoe", "qwen3_moe"),
    *("qwen3_next", "solar_open"),
}
KINDS = [
    (WITH_MEMORY, {"heads", "position", "cache", "neurons"}),
    (ENCODERS, {"cache", "cached", "decode", "neurons"}),
    (MIXTURES, {"neurons"}),
    ({"zamba2"}, {"neurons"}),  # its network writes to what a mixer reads, and not to the stream
    ({"jamba", "nemotron_h"}, {"position"}),
    (
        set(IMAGES),
        {"cache", "cached", "decode", "neurons", "embedding", "lens", "logits", "planner", "saliency", "text"},
    ),
    (
        {"segformer"},
        {
            *("cache", "cached", "decode", "neurons", "embedding", "lens", "logits", "planner", "saliency", "text"),
            "position",
        },
    ),
    ({"blip"}, {"decode", "neurons", "planner"}),
    ({"vision_encoder_decoder"}, {"decode", "planner"}),
    ({"clip", "siglip"}, {"cache", "cached", "decode", "lens", "logits", "neurons", "planner", "saliency"}),
    ({"clip_text_model", "siglip_text_model"}, {"cache", "cached", "decode", "lens", "logits", "neurons", "saliency"}),
]
WITHOUT = {family: lacking for families, lacking in KINDS for family in families}
"""What a family has nothing to show for; everything else opens on it."""
OF_ATTENTION = {"attention", "heads", "qkv", "position", "cache"}
"""What a family without any attention has nothing to show for."""
SEEING = {
    "vit", "dinov2", "vit_mae", "clip", "clip_vision_model", "siglip", "siglip_vision_model", "vision_encoder_decoder",
    "blip",
}  # fmt: skip
"""Families that read a picture alone or behind one token, of which alone patches are shown."""
OF_A_RUN = {"train", "trust"}
"""Screens of a run and of a file of laws, which no pass has."""


MEASURES = {"heads", "lens"}
"""Views that measure what a short text may not have: a repeated token, a token that follows."""
UNCHECKED = {"compare", "planner", "decode", "position"}
"""Views of which some payloads have no check: lists, plans, distributions behind a node, tables without a formula."""


def assert_opens(subject):
    """Say that every view that fits shows something, with checks that pass."""
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
                assert value.numel() == 0 or not value.isnan().all() or view.kind in MEASURES, (view.kind, name)


def lacking(family, subject):
    """Return the views that have nothing to show."""
    mixers = [module for module in subject.lm.model.stack.modules() if isinstance(module, StatefulMixer)]
    stateless = set() if any(mixer.role and mixer.output == "state" for mixer in mixers) else {"recurrence"}
    stateless |= set() if family in SEEING else {"patches"}
    stateless |= set() if len(stations_of(subject.seen)) > 1 else {"way"}
    stateless |= set() if head_of_classes(subject.lm.model) else {"classes"}
    if subject.seen.sites:
        return WITHOUT.get(family, set()) | stateless
    networks = any(isinstance(module, FEED_FORWARDS) for module in subject.lm.model.modules())
    written = set() if subject.lm.model.spec.writes else {"cached", "decode", "neurons"}
    return OF_ATTENTION | stateless | written | (set() if networks else {"neurons"})


@pytest.mark.parametrize("family", names())
def test_every_view_opens(family):
    subject = subject_of(family)
    opened = {view.kind for view in fitting(subject)}
    of_pass = {view for view in views() if find(view).screen not in OF_A_RUN}
    assert opened == of_pass - lacking(family, subject)
    assert_opens(subject)


CLASSIFIERS = ["BertForSequenceClassification", "BertForTokenClassification", "BertForQuestionAnswering", "BertModel"]
OTHERS = {
    **{name: ("bert", {"architectures": [name]}, {"text": "the cat"}) for name in CLASSIFIERS},
    "a decoder with classes": ("gpt2", {"architectures": ["GPT2ForSequenceClassification"]}, {"text": "the cat"}),
    "ids without a tokenizer": ("gpt2", {"tokenizer": None}, {"ids": [1, 2, 3, 4]}),
    "a recurrence without a tokenizer": ("lstm", {"tokenizer": None}, {"ids": [1, 2, 3, 4]}),
    "a pair without a tokenizer": ("t5", {"tokenizer": None}, {"source": [1, 2, 3], "target": [4, 5]}),
    "bfloat16": ("gpt2", {"dtype": torch.bfloat16}, {"text": "the cat sat on"}),
    "bfloat16 with rotations": ("llama", {"dtype": torch.bfloat16}, {"text": "the cat sat on"}),
    "float16": ("t5", {"dtype": torch.float16}, {"source": "the cat", "target": "the"}),
    "float64": ("bart", {"dtype": torch.float64}, {"source": "the cat", "target": "the"}),
    "one token": ("gpt2", {}, {"ids": [3]}),
    "nothing written yet": ("rnnsearch", {}, {"source": "the", "target": ""}),
    "a source alone": ("bart", {}, {"text": "the cat"}),
    "a pair of ids": ("bart", {}, {"source": TOKENIZER.encode("the cat"), "target": [2, *TOKENIZER.encode("the dog")]}),
}
"""Other models and other things to read: a family, how it is built, and what is given."""


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_and_inputs_open_too(name):
    family, how, given = OTHERS[name]
    lm = language_model_of(family, **how)
    assert_opens(ViewSubject(lm, Inside(lm, given)))


def test_a_conversation_is_cut_between_its_control_tokens(tmp_path):
    lm = load(chat_model(tmp_path / "chat"), "cpu", say=lambda line: None)
    turns = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "sat"}]
    subject = ViewSubject(lm, Inside(lm, {"messages": turns}))
    assert [one["text"] for one in shown("text", subject, {}).facts["streams"]] == ["user\nthe cat", "assistant\nsat"]
    assert_opens(subject)


@pytest.mark.parametrize("family", ["gpt2", "t5", "bert", "vit", "rnnsearch", "lstm", "vision_encoder_decoder"])
def test_a_pass_is_saved_as_one_page(family):
    html = Page(subject_of(family)).html()
    held = json.loads(html.split('id="held">')[1].split("</script>")[0])
    assert {view["kind"] for view in held["session"]["views"]} == {view.kind for view in fitting(subject_of(family))}


def test_patches_have_names():
    seen = subject_of("vit").seen
    assert seen.tokens[0] == "class"
    assert list(seen.tokens[1:3]) == ["1·1", "1·2"]
    assert len(seen.tokens) == seen["embedded"].shape[1]
    captioner = subject_of("vision_encoder_decoder").seen
    assert captioner.source_tokens[0] == "class"
    assert [site.keys for site in captioner.sites] == ["source", "tokens", "source"]
    assert torch.isfinite(captioner.first.logits).all()
