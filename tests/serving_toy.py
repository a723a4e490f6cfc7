"""A server of a tiny model, in this process and at a port of its own."""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from chat_toy import chat_tokenizer
from orrery.exchange.saving.save import save_model
from orrery.language_model.load import load
from orrery.language_model.model import LanguageModel
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


@contextmanager
def started_once(folders: Mapping[str, Callable[[Path], Path]], place: Callable[[str], Path]):
    """Give what starts a server of each kind, once, and returns it with its model."""
    with ExitStack() as going:

        @cache
        def of(kind: str) -> tuple[RunningServer, LanguageModel]:
            folder = folders[kind](place(kind))
            return going.enter_context(running(folder, "float32")), load(folder, "cpu", say=str)

        yield of


def requests_seen(toy, monkeypatch):
    """Return a list that grows with each request that reaches the engine of a server."""
    requests, submit = [], toy.served.worker.submit
    monkeypatch.setattr(toy.served.worker, "submit", lambda r, e: (requests.append(r), submit(r, e))[1])
    return requests


def prompt_of(toy, request):
    """Return the text of a request's prompt, control tokens too."""
    return toy.served.lm.tokenizer.decode(request.prompt, special=True)


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


def good(toy, path, **body):
    """Return the answer to a body that must be taken."""
    status, answer = post(toy, body, path)
    assert status == 200, answer
    return answer


def events(text):
    """Return the data of each event of a stream."""
    parts = text.removesuffix("\n\n").split("\n\n")
    assert all(part.startswith("data: ") for part in parts)
    return [part[6:] for part in parts]
