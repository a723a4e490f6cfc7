"""Looking at cached decoding: ``start`` and ``step`` take taps, show the keys of a forward, and edits act there."""

import pytest
import torch

from orrery.families import load_family
from orrery.inspection.checks import Mixing
from orrery.inspection.definition import DefinitionBeside
from orrery.inspection.recorder import Recorder
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.cache.kinds import growing, static
from orrery.nn.context import Execution
from tiny_models import randomised

IDS = torch.randint(0, 61, (2, 9), generator=torch.Generator().manual_seed(0))
DECODERS, WRITERS = ["gpt2", "llama", "lstm", "mistral", "deepseek_v2"], ["t5", "bart", "rnnsearch", "luong"]


def built(family):
    rules = load_family(family)
    return randomised(rules.spec(rules.TINY).build(0).double().eval())


def decoded(model, kernel, look=lambda: None):
    """Return the logits of a start and two steps, and the recorders of the three calls."""
    recorders = [look() for _ in range(3)]
    writes = hasattr(model, "target")
    begin = {"prompt": IDS[:, :4]} if writes else {}
    source = IDS if writes else IDS[:, :4]
    with torch.no_grad():
        logits, session = model.start(source, 9, execution=Execution(kernel, taps=recorders[0]), **begin)
        steps = [logits]
        for (first, last), recorder in zip(((4, 5), (5, 8)), recorders[1:], strict=True):
            logits = model.step(IDS[:, first:last], session, execution=Execution(kernel, taps=recorder))
            steps.append(logits)
    return steps, recorders


def forward(model, kernel, recorder):
    with torch.no_grad():
        return model.logits(*[IDS] * (2 if hasattr(model, "target") else 1), kernel=kernel, taps=recorder)


@pytest.mark.parametrize("kernel", [eager, sdpa])
@pytest.mark.parametrize("family", DECODERS + WRITERS)
def test_looking_at_a_cached_step_changes_no_number_and_shows_the_keys_of_a_forward(family, kernel):
    model, whole = built(family), Recorder()
    forward(model, kernel, whole)
    seen, recorders = decoded(model, kernel, Recorder)
    unseen, _ = decoded(model, kernel)
    assert all(torch.equal(a, b) for a, b in zip(seen, unseen, strict=True))
    own = [key for key in whole.values if not key.startswith("encoder.")]
    assert list(recorders[0].values) == list(whole.values)
    for recorder in recorders[1:]:
        assert list(recorder.values) == own
    for first, last, recorder in ((4, 5, recorders[1]), (5, 8, recorders[2])):
        for key in ("embedded", "blocks.0.resid_post", "final", "logits"):
            torch.testing.assert_close(recorder.values[key], whole.values[key][:, first:last], rtol=0, atol=1e-12)
    first = recorders[0].values["logits"].view(2, -1, 61)[:, -1]  # a decoder's head sees the last token alone
    torch.testing.assert_close(first, whole.values["logits"][:, 3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    ("family", "cache"),
    [
        *[(family, cache) for family in ("llama", "mistral", "deepseek_v2") for cache in (growing, static)],
        *[(family, None) for family in ("llama", "mistral", "deepseek_v2", "gemma2", "lstm")],
    ],
)
def test_what_was_kept_of_a_step_stays_when_the_cache_goes_on(family, cache, mode):
    model, recorders = built(family), [Recorder(), Recorder()]
    with mode():
        own = {} if cache is None else {"cache": cache(2, 9)}
        _, session = model.start(IDS[:, :4], 9, execution=Execution(taps=recorders[0]), **own)
        model.step(IDS[:, 4:6], session, execution=Execution(taps=recorders[1]))
        before = [{key: value.clone() for key, value in recorder.values.items()} for recorder in recorders]
        for _ in range(3):
            session = session.truncate([6, 6]) if family == "llama" else session
            model.step(IDS[:, :1], session)
        for kept, recorder in zip(before, recorders, strict=True):
            assert all(torch.equal(recorder.values[key], value) for key, value in kept.items())


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_an_edit_acts_on_a_cached_step(family):
    model = built(family)
    edit = {"blocks.1.*added": lambda value, key: value * 0}
    plain, _ = decoded(model, sdpa)
    edited, recorders = decoded(model, sdpa, lambda: Recorder(edit=edit))
    assert all(not torch.equal(a, b) for a, b in zip(plain, edited, strict=True))
    for recorder in recorders:
        assert torch.equal(recorder.values["blocks.1.resid_post"], recorder.values["blocks.0.resid_post"])
    whole = forward(model, sdpa, Recorder(edit=edit))
    torch.testing.assert_close(edited[2], whole[:, 5:8], rtol=0, atol=1e-12)
    answer, _ = decoded(model, sdpa, lambda: Recorder(edit={"logits": lambda value, key: value * 0}))
    assert all(bool((logits == 0).all()) for logits in answer)


@pytest.mark.parametrize("family", ["gpt2", "mistral", "t5"])
def test_the_definition_stands_beside_a_cached_step(family):
    model, writes = built(family), family == "t5"
    with torch.no_grad():
        _, session = model.start(IDS if writes else IDS[:, :4], 9)
        mixing = Mixing()
        recorder = Recorder(["*.pattern"], watchers=[mixing])
        model.step(IDS[:, 4:6], session, execution=Execution(DefinitionBeside(sdpa, recorder, mixing), taps=recorder))
    assert mixing.worst < 1e-12
    assert recorder.values["blocks.1.attention.pattern"].shape[2] == 2
