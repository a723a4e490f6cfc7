"""Models that Ollama, LM Studio and others keep: listed, read by their own names, and followed in what lies beside."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import orrery
from mlx_files import in_their_layout
from orrery.checkpoints.places import place_of
from orrery.checkpoints.stores import short_name
from orrery.cli.program import run
from orrery.errors import ModelFileError, OrreryError, UsageError
from orrery.exchange.exporting.export import export_gguf
from orrery.exchange.reading.inventory import ListedModel, inventory
from orrery.exchange.reading.read import read
from orrery.exchange.stored import wishes
from orrery.language_model.model import LanguageModel
from tiny_models import saved

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
TOLD = 'Say "hi" {{ and }} %} \\ only. 🙂\nOr {# this #}.'
PARAMS = {"stop": ["\n", "<end>"], "temperature": 0.6, "repeat_penalty": 1.1, "num_ctx": 4096, "num_predict": -1}
LIBRARY = "registry.ollama.ai/library"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a small GGUF file with a template for chats."""
    folder = saved(tmp_path_factory.mktemp("made") / "m", "llama", max_position_embeddings=256)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return export_gguf(read(folder), folder.parent / "m.gguf", "f32").path.read_bytes()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with nothing in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("orrery.settings.OLLAMA_SERVICE", tmp_path / "service")
    monkeypatch.setenv("ORRERY_RUNS", str(tmp_path / "runs"))
    for name in ("OLLAMA_MODELS", "LLAMA_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def layer(store: Path, kind: str, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    blob = store / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    return {"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


def pulled(store: Path, name: str, layers: Mapping[str, bytes]) -> Path:
    """Write a model as Ollama keeps it; return its manifest."""
    manifest = store / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    content = {"schemaVersion": 2, "layers": [layer(store, kind, one) for kind, one in layers.items()]}
    manifest.write_text(json.dumps(content))
    return manifest


def here() -> dict[str, ListedModel]:
    return {one.name: one for one in inventory()}


@pytest.mark.parametrize(
    ("manifest", "names"),
    [
        (f"{LIBRARY}/tiny/latest", ["tiny", "tiny:latest", "library/tiny", f"{LIBRARY}/tiny:latest"]),
        (f"{LIBRARY}/tiny/1b-q4_K_M", ["tiny:1b-q4_K_M"]),
        ("registry.ollama.ai/some/tiny/latest", ["some/tiny", "some/tiny:latest"]),
        ("hf.co/some/Tiny-GGUF/Q8_0", ["hf.co/some/Tiny-GGUF:Q8_0"]),
        ("localhost:5000/some/tiny/latest", ["localhost:5000/some/tiny"]),
    ],
)
def test_a_model_of_ollama_is_read_by_its_names_there(
    manifest: str, names: list[str], weights: bytes, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = pulled(home / ".ollama/models", manifest, {"model": weights, "license": b"MIT"})
    listed = here()
    assert list(listed) == [f"ollama:{names[0]}"]
    assert (one := listed[f"ollama:{names[0]}"]).can == ("chat", "write", "embed")
    assert (one.place, one.size, one.family) == (place, len(weights), "llama")
    for name in names:
        assert place_of(f"ollama:{name}") == place
    lm = orrery.load(f"ollama:{names[-1]}", "cpu", say=str)
    assert lm.stored.name == short_name(place) == names[0]
    assert len(lm.logits([[1, 2]])[0]) == 2
    (home / ".ollama").rename(home / "elsewhere")
    assert here() == {}
    monkeypatch.setenv("OLLAMA_MODELS", str(home / "elsewhere/models"))
    assert list(here()) == [f"ollama:{names[0]}"]


def test_what_lies_beside_is_followed_or_said(weights: bytes, home: Path) -> None:
    layers = {
        "model": weights, "params": json.dumps(PARAMS).encode(), "system": TOLD.encode(), "template": b"{{ .Prompt }}",
        "messages": b"[]", "projector": b"x",
    }  # fmt: skip
    manifest = pulled(home / ".ollama/models", f"{LIBRARY}/tiny/latest", layers)
    said: list[str] = []
    lm = orrery.load("ollama:tiny", "cpu", say=said.append)
    drawn = wishes(lm.stored).sampling
    assert {key: drawn[key] for key in ("temperature", "top_k", "top_p", "repetition_penalty")} == {
        "temperature": 0.6, "top_k": 40, "top_p": 0.9, "repetition_penalty": 1.1,
    }  # fmt: skip
    assert wishes(lm.stored).stop == ("\n", "<end>")
    assert "max_new_tokens" not in lm.stored.generation
    for what in ("run are left out: num_ctx", "Go, which is not run; the template of its", "turns", "pictures too"):
        assert sum(line.startswith(f"{manifest}: ") and what in line for line in said) == 1, what
    assert chat(lm, user="hello") == f"[system]{TOLD}\n[user]hello\n"
    assert chat(lm, system="own", user="hello") == "[system]own\n[user]hello\n"


def chat(lm: LanguageModel, **messages: str) -> str:
    turns = [{"role": role, "content": content} for role, content in messages.items()]
    return lm.tokenizer.decode(lm.chat_ids(turns, prompt=True).ids)


@pytest.mark.parametrize(
    ("params", "drawn"),
    [({"stop": ["a"]}, False), ({"temperature": 0}, False), ({"min_p": 0.1}, True), ({"temperature": 1}, True)],
)
def test_a_model_draws_where_its_parameters_do(params: dict[str, Any], drawn: bool, weights: bytes, home: Path) -> None:
    pulled(home / ".ollama/models", f"{LIBRARY}/t/latest", {"model": weights, "params": json.dumps(params).encode()})
    assert (wishes(read("ollama:t")).sampling["temperature"] > 0) == drawn


REFUSED: dict[str, tuple[dict[str, bytes], str]] = {
    "an adapter": ({"adapter": b"x"}, "has a LoRA"),
    "tensors": ({"tensor; name=a; dtype=BF16": b"x"}, "tensors one by one"),
    "mirostat": ({"params": b'{"mirostat": 2}'}, "mirostat = '2' is not built"),
    "no JSON": ({"params": b"{"}, "is not JSON"),
    "a word for a number": ({"params": b'{"temperature": "hot"}'}, "makes no sense"),
    "no text": ({"system": b"\xff"}, "is no text in UTF-8"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_built_is_refused_by_name(what: str, weights: bytes, home: Path) -> None:
    layers, why = REFUSED[what]
    pulled(home / ".ollama/models", f"{LIBRARY}/t/latest", {"model": weights, **layers})
    with pytest.raises(ModelFileError, match=why):
        read("ollama:t")


def test_damaged_models_are_told_of_and_the_rest_is_listed(weights: bytes, home: Path) -> None:
    store = home / ".ollama/models"
    good = pulled(store, f"{LIBRARY}/good/latest", {"model": weights})
    content = json.loads(good.read_text())
    broken = {
        "json": "{",
        "list": "[]",
        "layers": '{"layers": [1]}',
        "cloud": '{"layers": []}',
        "gone": good.read_text().replace(content["layers"][0]["digest"], f"sha256:{'0' * 64}"),
        "outside": good.read_text().replace(content["layers"][0]["digest"], "sha256:../../../../x"),
        "short": good.read_text().replace(str(len(weights)), str(len(weights) + 1)),
        "twice": json.dumps({"layers": content["layers"] * 2}),
    }
    for tag, text in broken.items():
        (good.parent / tag).write_text(text)
    (good.parent / "loop").symlink_to(good.parent / "loop")
    (good.parent / ".DS_Store").write_text("x")
    (store / "manifests/up").symlink_to(store / "manifests")
    listed = here()
    assert set(listed) == {"ollama:good", *(f"ollama:good:{tag}" for tag in (*broken, "loop"))}
    assert not listed.pop("ollama:good").fault
    words = {
        "json": "is not JSON", "list": "no JSON object", "layers": "names no layers", "cloud": "on this machine",
        "gone": "is missing", "outside": "a sha256 is expected", "short": "bytes of", "twice": "several models",
        "loop": "cannot be read",
    }  # fmt: skip
    for tag, word in words.items():
        assert word in listed[f"ollama:good:{tag}"].fault
        with pytest.raises(OrreryError):
            read(f"ollama:good:{tag}")


def test_a_store_without_rights_is_told_of(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = home / ".ollama/models/manifests"
    closed.mkdir(parents=True)
    listing = os.listdir

    def refusing(path: Any) -> list[str]:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return listing(path)

    monkeypatch.setattr(os, "listdir", refusing)
    (one,) = here().values()
    assert one.place == closed.parent
    assert one.fault


def test_what_no_program_keeps_is_refused_with_what_is_near(weights: bytes, home: Path) -> None:
    pulled(home / ".ollama/models", f"{LIBRARY}/tiny/latest", {"model": weights})
    with pytest.raises(ModelFileError, match="Ollama has no tinny in") as caught:
        read("ollama:tinny")
    assert "did you mean ollama:tiny?" in caught.value.hint
    for name in ("ollama:", "ollama:a b", "ollama:../x", "ollama:a/b/c/d", "ollama:a:b:c", f"ollama:{'a' * 500}"):
        with pytest.raises(UsageError, match="no name of Ollama's"):
            read(name)
    with pytest.raises(ModelFileError, match="LM Studio has no a/b"):
        read("lmstudio:a/b")


def test_lm_studio_has_files_and_folders_of_mlx(weights: bytes, home: Path) -> None:
    models = home / ".lmstudio/models"
    for name in ("one/a/a-Q4.gguf", "one/a/mmproj-a.gguf", "one/b/b-Q4.gguf", "one/b/b-Q8.gguf"):
        (models / name).parent.mkdir(parents=True, exist_ok=True)
        (models / name).write_bytes(weights)
    mlx = in_their_layout(home / "made", "mixtral")[1]
    (models / "mlx-community").mkdir()
    mlx.rename(models / "mlx-community/tiny-4bit")
    names = ["mlx-community/tiny-4bit", "one/a", "one/b/b-Q4.gguf", "one/b/b-Q8.gguf"]
    listed = here()
    assert list(listed) == [f"lmstudio:{name}" for name in names]
    assert not any(one.fault for one in listed.values())
    for name in listed:
        assert read(name).model.spec.vocabulary
    with pytest.raises(UsageError, match="lmstudio:one/b has 2 models") as caught:
        read("lmstudio:one/b")
    assert "lmstudio:one/b/b-Q4.gguf" in caught.value.hint


@pytest.mark.parametrize("where", ["pointer", "older", "settings"])
def test_lm_studio_may_be_elsewhere(where: str, weights: bytes, home: Path) -> None:
    place = {"pointer": home / "p/models", "older": home / ".cache/lm-studio/models", "settings": home / "far"}[where]
    (place / "a/b").mkdir(parents=True)
    (place / "a/b/b.gguf").write_bytes(weights)
    if where == "pointer":
        (home / ".lmstudio-home-pointer").write_text(f"{home / 'p'}\n")
    if where == "settings":
        (home / ".lmstudio").mkdir()
        (home / ".lmstudio/settings.json").write_text(json.dumps({"downloadsFolder": str(place)}))
    assert list(here()) == ["lmstudio:a/b"]
    assert place_of("lmstudio:a/b") == place / "a/b/b.gguf"


@pytest.mark.parametrize(
    ("system", "place"),
    [
        ("linux", ".cache/llama.cpp/org_m_m.gguf"),
        ("linux", ".local/share/nomic.ai/GPT4All/m.gguf"),
        ("linux", ".local/share/Jan/data/llamacpp/models/m/model.gguf"),
        ("darwin", "Library/Caches/llama.cpp/org_m_m.gguf"),
        ("darwin", "Library/Application Support/nomic.ai/GPT4All/m.gguf"),
        ("darwin", "Library/Application Support/Jan/data/llamacpp/models/m/model.gguf"),
    ],
)
def test_other_programs_keep_files_that_are_named_by_their_path(
    system: str, place: str, weights: bytes, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", system)
    (home / place).parent.mkdir(parents=True)
    (home / place).write_bytes(weights)
    (home / place).with_name("manifest=org=m=latest.json").write_text("{}")
    assert list(here()) == [str(home / place)]


def test_verbs_take_these_names(weights: bytes, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pulled(home / ".ollama/models", f"{LIBRARY}/tiny/latest", {"model": weights, "system": b"Be brief."})
    assert run(["models"]) == 0
    assert "ollama:tiny" in capsys.readouterr().out
    assert run(["show", "ollama:tiny"]) == 0
    assert run(["import", "ollama:tiny", str(home / "out")]) == 0
    assert chat(orrery.load(home / "out", "cpu", say=str), user="a") == "[system]Be brief.\n[user]a\n"
    assert run(["show", "ollama:tinny"]) == 4
    assert "did you mean ollama:tiny?" in capsys.readouterr().err


def test_a_manifest_is_known_from_the_folder_of_its_store_too(
    weights: bytes, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulled(home / "store", f"{LIBRARY}/tiny/latest", {"model": weights})
    monkeypatch.chdir(home / "store")
    assert read(Path(f"manifests/{LIBRARY}/tiny/latest")).name == "tiny"
