"""What tests of the server share: one of a model that chats, and what reaches its engine."""

import pytest

from served_models import chat_folder
from serving_toy import requests_seen, running


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A server of a tiny model with the template of Qwen3; a file whose tests ask another has its own."""
    with running(chat_folder(tmp_path_factory.mktemp("models") / "tiny", chat="qwen-3"), "float32") as server:
        yield server


@pytest.fixture
def seen(toy, monkeypatch):
    """The requests that reach the engine."""
    return requests_seen(toy, monkeypatch)
