"""The `ollama` package against a server: what its users call, and the fields that it knows."""

import json

import pytest

from orrery.serving import ollama_options
from orrery.serving.schema import ollama as asked
from scripted import write

ollama = pytest.importorskip("ollama")

SAID = [{"role": "user", "content": "a dog"}]


@pytest.fixture(scope="module")
def client(toy):
    with ollama.Client(host=toy.url) as ollama_client:
        yield ollama_client


def look(at: str) -> str:
    """See.

    Args:
        at: where.
    """
    return f"a {at}"


def test_chats_and_prompts_whole_and_streamed(client, toy, monkeypatch):
    options = {"num_predict": 5, "temperature": 0}
    assert client.chat("toy", messages=SAID, options=options).message.content == (
        toy.served.lm.reply(SAID, max_new_tokens=5, temperature=0).text
    )
    write(monkeypatch, toy, "so it is, and more", end=None)
    whole = client.chat("toy", messages=SAID, options=options)
    parts = list(client.chat("toy", messages=SAID, options=options, stream=True))
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert (parts[-1].done_reason, parts[-1].eval_count) == ("length", 5)
    generated = client.generate("toy", prompt="a dog", options=ollama.Options(**options))
    assert generated.response == whole.message.content
    assert client.generate("toy", prompt="b", context=generated.context, options=options).prompt_eval_count > len(
        generated.context
    )


def test_a_function_is_called_and_its_result_told(client, toy, monkeypatch):
    with monkeypatch.context() as patch:
        write(patch, toy, '<tool_call>\n{"name": "look", "arguments": {"at": "cat"}}\n</tool_call>')
        answered = client.chat("toy", messages=SAID, tools=[look])
    (call,) = answered.message.tool_calls
    result = {"role": "tool", "tool_name": call.function.name, "content": look(**call.function.arguments)}
    assert result["content"] == "a cat"
    assert client.chat("toy", messages=[*SAID, answered.message, result], tools=[look], options={"num_predict": 2}).done


def test_thoughts_forms_vectors_and_lists(client, toy, monkeypatch):
    with monkeypatch.context() as patch:
        write(patch, toy, "<think>\nwhy\n</think>\n\nSo.")
        answered = client.chat("toy", messages=SAID, think=True)
    assert (answered.message.thinking, answered.message.content) == ("why", "So.")
    form = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}
    assert json.loads(client.chat("toy", messages=SAID, format=form).message.content) == {"a": 1}
    vectors = client.embed("toy", input=["a", "b"]).embeddings
    assert list(client.embeddings("toy", prompt="a").embedding) == pytest.approx(list(vectors[0]), abs=1e-6)
    assert client.list().models[0].model == client.ps().models[0].model == "toy:latest"
    assert client.show("toy").modelinfo["general.architecture"] == "llama"
    assert client.pull("toy").status == "success"


def test_errors_are_its_own(client):
    for status, call in (
        (404, lambda: client.chat("x", messages=SAID)),
        (400, lambda: client.chat("toy", messages=[{**SAID[0], "images": [b"x"]}])),
        (400, lambda: list(client.generate("toy", prompt="a", options={"mirostat": 1}, stream=True))),
    ):
        with pytest.raises(ollama.ResponseError) as caught:
            call()
        assert caught.value.status_code == status
        assert caught.value.error[0].isascii()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ChatRequest", asked.OllamaChatRequest),
        ("GenerateRequest", asked.GenerateRequest),
        ("EmbedRequest", asked.EmbedRequest),
        ("EmbeddingsRequest", asked.OllamaEmbeddingsRequest),
        ("ShowRequest", asked.ShowRequest),
    ],
)
def test_every_field_is_followed_refused_or_harmless_for_a_reason(theirs, ours):
    fields = set(getattr(ollama._types, theirs).model_fields)
    assert fields - set(ours.model_fields) - set(ours.UNSUPPORTED) == set()


def test_every_option_is_followed_refused_or_harmless_for_a_reason():
    own = {*ollama_options.DRAWN, *ollama_options.COUNTS, *ollama_options.HARMLESS, *ollama_options.UNSUPPORTED}
    assert set(ollama.Options.model_fields) - own == set()
