"""Passes that a page holds: images by name alone, and what cannot be looked into."""

from pathlib import Path

import pytest

from orrery.data.pictures.addresses import BEGINNING as DATA
from orrery.errors import DataError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.language_model.model import LanguageModel
from orrery.page.passes import Passes
from tiny_models import TOKENIZER, smallest, tiny


@pytest.fixture(scope="module")
def vision():
    return LanguageModel(Stored(Path("tiny"), smallest("vit")))


@pytest.fixture(scope="module")
def text():
    return LanguageModel(Stored(Path("tiny"), tiny("gpt2"), tokenizer=TOKENIZER))


def test_a_client_sees_images_by_name_and_no_path(vision, tmp_path):
    passes = Passes(vision)
    (tmp_path / "cat.png").write_bytes(b"pixels")
    with pytest.raises(UsageError, match=r"there is no image 'cat.png'") as error:
        passes._with_content({"image": "cat.png"})
    assert error.value.hint == f"send its content ({DATA}...); there is none that this program was started with"
    assert passes.keep_image(tmp_path / "cat.png") == "cat.png"
    assert passes._with_content({"image": "cat.png"}) == {"image": f"{DATA}cGl4ZWxz"}
    with pytest.raises(UsageError, match="there is no image") as error:
        passes._with_content({"image": str(tmp_path / "cat.png")})
    assert error.value.hint.endswith("there is cat.png")
    with pytest.raises(DataError, match=r"dog.png cannot be read: No such file") as missing:
        passes.keep_image(tmp_path / "dog.png")
    assert missing.value.hint == "check the path"


def test_a_pass_is_computed_once_and_let_go_of_in_its_turn(text, monkeypatch):
    monkeypatch.setattr("orrery.page.passes.MOST", 2)
    passes = Passes(text)
    first = passes.open({"text": "the cat"})
    assert passes.open({"text": "the cat"}) is first
    passes.open({"text": "the dog"})
    assert passes.open({"text": "the cat"}) is first
    passes.open({"text": "the mat"})
    assert passes.show(first.id, "tokens", {}).facts["id"] == first.id
    passes.open({"text": "the log"})
    with pytest.raises(UsageError, match="is not open") as error:
        passes.open({"text": "a"}, [{"at": "ids", "op": "patch", "from": "nothing"}])
    assert error.value.hint == "look inside the text again"


def test_a_model_without_a_run_has_no_checkpoints(text):
    with pytest.raises(UsageError, match="belongs to no run, and so has no checkpoints") as error:
        Passes(text).open({"text": "the cat"}, checkpoint=3)
    assert error.value.hint == "serve the folder of a run"
