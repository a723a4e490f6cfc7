"""The picture of a pass, cut into patches: the pixels that were given, and a check that a wrong picture fails."""

import pytest
import torch

from orrery.data.pictures.addresses import content_of
from orrery.data.pictures.files import read_pixels
from orrery.errors import UsageError
from orrery.page.views import patches
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject, shown
from views_toy import PIXELS, language_model_of, subject_of


@pytest.mark.parametrize(
    ("family", "stream"), [("vit", "tokens"), ("siglip_vision_model", "tokens"), ("vision_encoder_decoder", "source")]
)
def test_the_pixels_that_were_given_are_shown(family, stream):
    lm, pixels = language_model_of(family), PIXELS[:12, :12].contiguous()
    given = {"image": pixels, **({"target": "the dog"} if stream == "source" else {})}
    found = shown("patches", ViewSubject(lm, Inside(lm, given)), {})
    facts = dict(found.facts)
    assert torch.equal(read_pixels(content_of(facts.pop("picture"))), pixels.permute(2, 0, 1))
    before = 0 if family == "siglip_vision_model" else 1
    assert facts == {"stream": stream, "patches": [3, 3], "before": before, "patch": [4, 4], "pixels": [12, 12]}
    assert [check.passed for check in found.checks] == [True]


def test_the_check_sees_another_picture(monkeypatch):
    subject = subject_of("vit")
    monkeypatch.setattr(patches, "_read", lambda inside: inside.first.ids[0].flip(1))
    assert [check.passed for check in shown("patches", subject, {}).checks] == [False]


def test_a_text_has_no_patches():
    with pytest.raises(UsageError, match="nothing to show"):
        shown("patches", subject_of("gpt2"), {})
