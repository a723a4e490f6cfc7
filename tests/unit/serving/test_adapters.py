"""LoRAs over the served model: a client that names one is answered with it, and with the model itself otherwise."""

import copy

import pytest
import torch

from orrery.errors import UsageError
from orrery.language_model.load import load
from orrery.serving.background import serving
from orrery.tuning.lora import LoRA
from orrery.tuning.peft import save_adapter
from serving_toy import chat_model, post

ASKED = {"prompt": "one two three", "max_tokens": 8, "temperature": 0}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folder of a tiny model, and that of an adapter over it, in peft's layout."""
    base = chat_model(tmp_path_factory.mktemp("models") / "base")
    lm = load(base, "cpu", "float64", say=lambda line: None)
    adapted = copy.deepcopy(lm.model)
    LoRA(targets=("*.q", "*.out"), rank=2).apply(adapted)
    torch.manual_seed(2)
    with torch.no_grad():
        for name, part in adapted.named_parameters():
            if name.endswith((".lora_a", ".lora_b")):
                part.copy_(torch.randn_like(part))
    lm.stored = type(lm.stored)(**{**vars(lm.stored), "model": adapted})
    save_adapter(lm, base.parent / "loud")
    return base, base.parent / "loud"


@pytest.fixture(scope="module")
def toy(folders):
    base, adapter = folders
    lm = load(base, "cpu", "float64", say=lambda line: None)
    with serving(lm, "toy", {"loud": adapter}, grace=5) as server:
        yield server


def test_each_name_is_answered_by_its_own_model(folders, toy):
    base, adapter = folders
    for name, folder in (("toy", base), ("loud", adapter)):
        alone = load(folder, "cpu", "float64", say=lambda line: None).generate(ASKED["prompt"], max_new_tokens=8)
        status, answer = post(toy, {**ASKED, "model": name})
        assert (status, answer["model"], answer["choices"][0]["text"]) == (200, name, alone)
    texts = [post(toy, {**ASKED, "model": name})[1]["choices"][0]["text"] for name in ("toy", "loud")]
    assert texts[0] != texts[1]


def test_an_adapter_answers_chats_and_streams_under_its_name(toy):
    asked = {"model": "loud", "messages": [{"role": "user", "content": "one"}], "max_tokens": 2}
    status, answer = post(toy, asked, "/v1/chat/completions")
    assert (status, answer["model"]) == (200, "loud")
    status, text = post(toy, {**asked, "stream": True}, "/v1/chat/completions")
    assert status == 200
    assert '"model":"loud"' in text


def test_an_adapter_is_refused_where_it_does_not_write_and_another_name_everywhere(toy):
    status, answer = post(toy, {"model": "loud", "input": "one"}, "/v1/embeddings")
    assert (status, answer["error"]["param"]) == (400, "model")
    status, answer = post(toy, {**ASKED, "model": "quiet"})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert "'toy', 'loud'" in answer["error"]["message"]


def test_the_list_of_models_names_the_adapters(toy):
    import json
    import urllib.request

    with urllib.request.urlopen(f"{toy.url}/v1/models") as answer:
        cards = json.load(answer)["data"]
    assert [(card["id"], card["parent"]) for card in cards] == [("toy", None), ("loud", "toy")]
    assert "/v1/embeddings" not in cards[1]["routes"]


def test_a_name_is_given_once(folders):
    base, adapter = folders
    lm = load(base, "cpu", "float64", say=lambda line: None)
    with pytest.raises(UsageError, match="both called 'toy'"), serving(lm, "toy", {"toy": adapter}):
        pass
