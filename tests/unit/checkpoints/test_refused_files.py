"""Files and places that are refused: which one, what is wrong with it, and what to do."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import orrery
from orrery.checkpoints import gguf, manifest
from orrery.checkpoints.json_file import read_json
from orrery.checkpoints.manifest import FORMAT, NAME, NewerFormatError, check_folder, file_sha256, manifest_text
from orrery.checkpoints.outputs import Output, OutputFile, OutputFolder, refuse_same
from orrery.checkpoints.rules import rename, to_theirs
from orrery.checkpoints.tensors import read_tensors
from orrery.errors import ModelFileError, OrreryError, UsageError

ANOTHER, AGAIN = "use another checkpoint of the run", "get the file again from its source"


def refusal(ask: Callable[[], Any]) -> OrreryError:
    with pytest.raises(OrreryError) as refused:
        ask()
    return refused.value


@pytest.mark.parametrize(
    ("content", "told", "hint"),
    [
        (None, " is missing", "is the folder complete?"),
        (b"{", " is not JSON: ", AGAIN),
        (b"\xff", " is not JSON: ", AGAIN),
        (b'{"a": 1, "a": 2}', " is not JSON: ", AGAIN),
        (b"[" * 100_000, " is not JSON: ", AGAIN),
        (b"[1]", " holds no JSON object", AGAIN),
        (b'{"a": "%s"}' % (b"x" * 100), " is no regular file of at most 100 bytes", AGAIN),
    ],
)
def test_what_is_no_json_object_is_named(content: bytes | None, told: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    if content is not None:
        path.write_bytes(content)
    error = refusal(lambda: read_json(path, 100 if b"xxx" in (content or b"") else 10**6))
    assert type(error) is ModelFileError
    assert error.message.startswith(f"{path}{told}")
    assert error.hint == hint


def test_a_path_through_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = refusal(lambda: read_json(tmp_path / "file" / "config.json"))
    assert error.message == f"{tmp_path}/file/config.json cannot be read: Not a directory"
    assert error.hint == "check the path and its rights"


def finished(folder: Path, **changes: Any) -> dict[str, Any]:
    """Write a folder whose manifest is right, but for some changes; return the manifest."""
    (folder / "weights").write_bytes(b"abc")
    record = manifest.FileRecord(3, file_sha256(folder / "weights"))
    content = json.loads(manifest_text({"weights": record})) | changes
    (folder / NAME).write_text(json.dumps({name: value for name, value in content.items() if value is not None}))
    return content


MANIFESTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no number of the format": ({"format": "x"}, "{path} is damaged", ANOTHER),
    "no format": ({"format": None}, "{path} is damaged", ANOTHER),
    "no writer": ({"written_by": None}, "{path} is damaged", ANOTHER),
    "no files": ({"files": None}, "{path} is damaged", ANOTHER),
    "a list of files": ({"files": ["weights"]}, "{path} is damaged", ANOTHER),
    "a file without a size": ({"files": {"weights": {"sha256": "a"}}}, "{path} is damaged", ANOTHER),
    "a file without a digest": ({"files": {"weights": {"size": 3}}}, "{path} is damaged", ANOTHER),
    "a file elsewhere": (
        {"files": {"../weights": {"size": 3, "sha256": "a"}}}, "{path} names '../weights', no plain file", ANOTHER),
    "itself": ({"files": {NAME: {"size": 3, "sha256": "a"}}}, f"{{path}} names '{NAME}', no plain file", ANOTHER),
    "another size": (
        {"files": {"weights": {"size": 4, "sha256": "a"}}},
        "{folder}/weights has 3 bytes, its manifest says 4 bytes", f"the file is cut or changed; {ANOTHER}"),
    "a file that is gone": (
        {"files": {"gone": {"size": 4, "sha256": "a"}}},
        "{folder}/gone is missing, its manifest says 4 bytes", f"the file is cut or changed; {ANOTHER}"),
    "another digest": (
        {"files": {"weights": {"size": 3, "sha256": "a"}}},
        "{folder}/weights (3 bytes as expected) differs from the sha256 in its manifest",
        f"a byte has changed; {ANOTHER}"),
    "a newer format": (
        {"format": FORMAT + 1, "written_by": "9.0"},
        f"{{folder}} was written by Orrery 9.0 (format {FORMAT + 1}); this is {orrery.__version__} (format {FORMAT})",
        "install the newer version to read it"),
}  # fmt: skip


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_checkpoint_that_its_manifest_does_not_describe_is_refused(what: str, tmp_path: Path) -> None:
    changes, message, hint = MANIFESTS[what]
    finished(tmp_path, **changes)
    error = refusal(lambda: check_folder(tmp_path))
    assert type(error) is (NewerFormatError if what == "a newer format" else ModelFileError)
    assert error.message == message.format(path=tmp_path / NAME, folder=tmp_path)
    assert error.hint == hint


def test_a_checkpoint_that_its_manifest_describes_is_sound(tmp_path: Path) -> None:
    error = refusal(lambda: check_folder(tmp_path))
    assert (error.message, error.hint) == (
        f"{tmp_path / NAME} is missing", "this folder is not a finished checkpoint",
    )  # fmt: skip
    content = finished(tmp_path)
    check_folder(tmp_path, ("weights",))
    assert content["format"] == FORMAT
    assert content["written_by"] == orrery.__version__
    error = refusal(lambda: check_folder(tmp_path, ("weights", "optimizer")))
    assert (error.message, error.hint) == (f"{tmp_path / NAME} does not list optimizer", ANOTHER)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for folder in ("full", "full/inner", "own", "empty"):
        Path(folder).mkdir()
    for file in ("file", "full/a", "full/b", "own/x"):
        Path(file).touch()
    Path("nowhere").symlink_to("gone")
    os.mkfifo("pipe")
    return tmp_path


def written(output: Output) -> None:
    with output.aside():
        pass


NOTHING = "an input is never written over: choose another name for the output"
OUTPUTS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a folder as a file": (lambda: OutputFile("full"), "full is a folder", "name a file"),
    "a file that exists": (
        lambda: OutputFile("file"), "file exists already", "add --overwrite to replace it, or choose another name"),
    "a place below a file": (
        lambda: OutputFile("file/a"), "cannot write file/a: Not a directory", "choose another name or folder"),
    "a place below a file, in another spelling": (
        lambda: OutputFile("gone/../file/a"),
        "gone/../file/a cannot be written: {place}/file is a file", "choose another place"),
    "an input": (
        lambda: OutputFile("file", inputs=["file"], overwrite=True),
        "file is read by this command (file)", "choose another name for the output"),
    "a part of an input": (
        lambda: OutputFile("full/a", inputs=["full"], overwrite=True),
        "full/a is part of full, which this command reads", NOTHING),
    "a folder inside an input": (
        lambda: OutputFolder("own", ["x"], inputs=["."], overwrite=True),
        "own is part of ., which this command reads", NOTHING),
    "a folder around an input": (
        lambda: OutputFolder("own", ["x"], inputs=["own/x"], overwrite=True),
        "own/x, which this command reads, lies in own", "choose another folder"),
    "a file as a folder": (lambda: OutputFolder("file"), "file is a file", "choose another name for the folder"),
    "a folder of others": (
        lambda: OutputFolder("full", ["a"], overwrite=True),
        "full is not empty: it has b, inner, which this command does not write",
        "choose another folder, a new or an empty one"),
    "a folder of its own": (
        lambda: OutputFolder("own", ["x"]), "own is not empty: it has x",
        "add --overwrite to replace it, or choose another folder"),
    "a link to nothing": (
        lambda: OutputFile("nowhere"), "nowhere is a link to nothing", "remove it, or choose another name"),
    "a name with a zero byte": (lambda: OutputFile("a\0b"), "'a\\x00b' is no path: ", "choose another name"),
    "a pipe that is read back": (
        lambda: written(OutputFile("pipe")), "pipe is a pipe or a device", "name a file that can be read back"),
    "one file twice": (
        lambda: refuse_same(OutputFile("new"), OutputFile("./new")),
        "new and new are the same file", "give them two names"),
}  # fmt: skip


@pytest.mark.parametrize("what", OUTPUTS)
def test_a_place_that_cannot_be_written_is_refused_with_what_to_do(what: str, place: Path) -> None:
    ask, message, hint = OUTPUTS[what]
    error = refusal(ask)
    assert type(error) is UsageError
    assert error.message.startswith(message.format(place=place))
    assert error.hint == hint


def test_places_beside_those_are_taken(place: Path) -> None:
    for output in (
        OutputFile("file", overwrite=True),
        OutputFile("full/new", inputs=["file", "full/a"]),
        OutputFile("pipe"),
        OutputFolder("empty"),
        OutputFolder("own", ["x", "y"], overwrite=True),
        OutputFolder("new", inputs=["own"]),
    ):
        assert output.path == place / output.given


@pytest.mark.parametrize(
    ("number", "width", "kind", "error", "message", "hint"),
    [
        (1.0, 33, "q8_0", UsageError, "m has rows of 33 numbers, and q8_0 stores blocks of 32",
         "use --type f16, bf16 or f32"),
        (7e4, 32, "f16", UsageError, "m holds 7e+04, beyond the range of f16", "use --type bf16 or f32"),
        (float("inf"), 32, "f32", ModelFileError, "m holds numbers that are not finite",
         "the model is broken: take another"),
        (float("nan"), 32, "bf16", ModelFileError, "m holds numbers that are not finite",
         "the model is broken: take another"),
    ],
)  # fmt: skip
def test_what_a_kind_of_numbers_cannot_hold_is_refused(
    number: float, width: int, kind: str, error: type[OrreryError], message: str, hint: str
) -> None:
    refused = refusal(lambda: gguf.check_storable({"m": torch.full((2, width), number)}, kind))
    assert (type(refused), refused.message, refused.hint) == (error, message, hint)


def test_a_file_of_tensors_that_is_not_there_or_not_sound_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    error = refusal(lambda: read_tensors(path))
    assert (error.message, error.hint) == (f"{path} is missing", "check the path; is the folder complete?")
    path.write_bytes(b"\xff" * 64)
    error = refusal(lambda: read_tensors(path))
    assert type(error) is ModelFileError
    assert error.message.startswith(f"{path} is not a sound safetensors file: a header of ")
    assert error.hint == AGAIN


def test_a_tensor_without_a_place_in_the_family_s_file_is_named() -> None:
    with pytest.raises(UsageError) as refused:
        to_theirs({"ours": torch.ones(1), "added": torch.ones(1)}, [rename("theirs", "ours")])
    assert refused.value.message.startswith("the family's files cannot hold this model; tensors ")
    assert "added" in refused.value.message
    assert "save the model that its configuration describes" in refused.value.hint
