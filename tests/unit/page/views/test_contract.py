import json
from typing import ClassVar

import pytest
import safetensors.torch
import torch

import orrery
from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.page.assets import assets
from orrery.page.views import View, names, register
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import ViewSubject, find, fitting, shown
from tiny_models import saved

FAMILIES = ("gpt2", "llama", "bert", "rnnsearch")


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    by_family = {}
    for family in FAMILIES:
        lm = orrery.load(saved(tmp_path_factory.mktemp(family) / "model", family), "cpu", say=lambda line: None)
        given = {"text": "the cat sat"}
        if family == "rnnsearch":
            given = {"source": "the cat sat", "target": "the dog"}
        by_family[family] = ViewSubject(lm, Inside(lm, given))
    return by_family


def read(payload, folder):
    """Return a payload as any reader of safetensors finds it: facts, checks, tensors."""
    file = folder / "payload.safetensors"
    file.write_bytes(payload.to_bytes())
    with safetensors.safe_open(file, "pt") as opened:
        told = json.loads(opened.metadata()["view"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    return told["facts"], told["checks"], tensors


def test_a_payload_is_a_safetensors_file_with_facts_and_checks(tmp_path):
    values = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 255], dtype=torch.uint8)}
    checks = [Check("holds", 1e-7, 1e-5), Check("fails", float("nan"), 1e-5)]
    facts, told, tensors = read(Payload({"n": 3, "none": float("inf"), "list": [1.5]}, values, checks), tmp_path)
    assert facts == {"n": 3, "none": None, "list": [1.5]}
    assert [(check["name"], check["value"], check["passed"]) for check in told] == [
        ("holds", 1e-7, True),
        ("fails", None, False),
    ]
    assert all(torch.equal(tensors[name], values[name]) for name in values)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_view_that_fits_can_be_saved_and_passes_its_checks(subjects, family, tmp_path):
    subject = subjects[family]
    assert fitting(subject)
    for view in fitting(subject):
        for asked in view.saved(subject):
            given = asked.model_dump(exclude_none=True)
            facts, checks, _ = read(shown(view.kind, subject, given), tmp_path)
            assert facts is not None
            failed = [check for check in checks if not check["passed"]]
            assert not failed, (view.kind, given, failed)
            # The texts of a URL's query mean the same.
            texts = {name: str(value) for name, value in given.items()}
            assert shown(view.kind, subject, texts).to_bytes() == shown(view.kind, subject, given).to_bytes()


def test_every_view_has_the_module_that_draws_it():
    everything = "".join(content.decode() for path, content in assets().items() if path.endswith(".js"))
    for name in names():
        assert "export default" in assets()[f"see/views/{name}.js"].decode()
        assert everything.count(f'"view.{name}"') >= 2, f"the view {name} has not a title in both languages"


def test_a_view_of_ones_own_is_found_by_its_name(subjects):
    @register
    class Lengths(View):
        kind: ClassVar[str] = "lengths_of_the_stream"

        def payload(self, subject, asked):
            return Payload({}, {"norms": subject.seen["embedded"].norm(dim=-1)})

    assert "lengths_of_the_stream" in names()
    norms = shown("lengths_of_the_stream", subjects["gpt2"], {}).tensors["norms"]
    assert torch.equal(norms, subjects["gpt2"].seen["embedded"].norm(dim=-1))
    import orrery.page.views._view as contract

    contract._REGISTRY._parts.pop("lengths_of_the_stream")


@pytest.mark.parametrize(
    ("view", "asked", "said"),
    [
        ("attenton", {}, "no view called 'attenton'"),
        ("attention", {"layr": 0}, "did you mean 'layer'"),
        ("attention", {"layer": "first"}, "valid integer"),
        ("attention", {"layer": 7}, "block 7 has no"),
        ("attention", {"site": 3}, "no attention 3"),
        ("attention", {"layer": 0, "head": 9, "query": 0}, "no head 9"),
        ("attention", {"layer": 0, "head": 0, "query": -1}, "query -1"),
        ("logits", {"named": "1,9999"}, "names a token outside the vocabulary: ids are 0 to 289"),
        ("parameters", {"matrix": "embed.token.weight", "row": 9999, "column": 0}, "no cell 9999, 0: 290 rows"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(subjects, view, asked, said):
    with pytest.raises(UsageError) as error:
        shown(view, subjects["gpt2"], asked)
    assert said in f"{error.value.message}: {error.value.hint}"


@pytest.mark.parametrize("view", names())
def test_a_view_asked_for_nothing_is_asked_for_what_it_allows(view):
    kind = find(view).Settings
    asked = kind()
    assert kind.model_validate(asked.model_dump(exclude_none=True)) == asked


def test_a_tree_asked_for_nothing_follows_greedy_three_beams_and_two_samples(subjects):
    ways = {
        way["name"] if isinstance(way, dict) else way for way in shown("decode", subjects["gpt2"], {}).facts["ways"]
    }
    assert len([way for way in ways if way.startswith("sample")]) == 2
    assert len([way for way in ways if way.startswith("beam")]) == 3


def test_the_name_of_a_pass_is_short_and_of_its_ids_and_edits(subjects):
    inside = subjects["gpt2"].inside
    other = Inside(inside.lm, {"text": "the cat sat on"})
    edited = Inside(inside.lm, {"text": "the cat sat"}, [{"op": "zero", "at": "blocks.0.attention.mixed"}])
    ids = [inside.id, other.id, edited.id]
    assert len(set(ids)) == 3
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in ids)  # a part of an address


def test_a_tensor_that_was_let_go_of_is_computed_again(subjects, monkeypatch):
    whole = subjects["gpt2"].seen
    monkeypatch.setattr("orrery.page.views._inside.BUDGET", 1)  # nothing but what is never let go of
    small = Inside(whole.lm, whole.given)
    key = "blocks.1.attention.pattern"
    assert key in small
    assert key not in small.first
    assert torch.equal(small[key], whole[key])
    assert small.id == whole.id
    with pytest.raises(UsageError, match="nothing is called"):
        small["blocks.1.attention.patern"]
