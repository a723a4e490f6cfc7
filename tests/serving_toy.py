"""A server of a tiny model, in this process and at a port of its own."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chat_toy import chat_tokenizer
from orrery.exchange.saving.save import save_model
from orrery.language_model.load import load
from orrery.serving.background import RunningServer, serving
from orrery.text.chat.formats import ChatFormat
from tiny_models import CONFIGS, tiny

JINJA = ChatFormat("chatml").jinja()
CONTEXT = 128


def chat_model(folder: Path, template: str = JINJA, context: int = CONTEXT) -> Path:
    """Save a tiny llama that knows ChatML, and return its folder; what it writes is noise."""
    tokenizer = chat_tokenizer("chatml")
    sizes = {"vocab_size": tokenizer.size, "max_position_embeddings": context}
    config = {**CONFIGS["llama"], **sizes}
    save_model(folder, tiny("llama", **sizes), "llama", config, tokenizer, chat={"default": template})
    return folder


@contextmanager
def running(folder: Path, dtype: str = "float64", **settings: object) -> Iterator[RunningServer]:
    """Serve a model folder from a thread of this process until the block ends; the model is called ``toy``."""
    lm = load(folder, "cpu", dtype, say=lambda line: None)
    with serving(lm, "toy", **{"grace": 5, **settings}) as server:
        yield server


@contextmanager
def served(folder: Path, **settings: object) -> Iterator[str]:
    """Serve a model folder and give its URL; the model is called ``toy``."""
    with running(folder, **settings) as server:
        yield server.url


def post(toy, body, path="/v1/completions", **headers):
    """Return the status and the body of the answer: what its JSON says, or the text of a stream."""
    connection = http.client.HTTPConnection(toy.url.removeprefix("http://"), timeout=60)
    data = body if isinstance(body, bytes) else json.dumps(body)
    connection.request("POST", path, data, {"Content-Type": "application/json", **headers})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    streamed = response.headers["content-type"].startswith("text/event-stream")
    return response.status, text if streamed else json.loads(text)


def events(text):
    """Return the data of each event of a stream."""
    parts = text.removesuffix("\n\n").split("\n\n")
    assert all(part.startswith("data: ") for part in parts)
    return [part[6:] for part in parts]
