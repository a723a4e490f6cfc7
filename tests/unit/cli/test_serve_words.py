"""What the words of ``orrery serve`` become: adapters by name, the key, and what is refused before a model is read."""

from pathlib import Path

import pytest

from orrery.cli import serve
from orrery.errors import DataError, MachineError, UsageError


def test_adapters_are_folders_by_name():
    assert serve._folders([]) == {}
    assert serve._folders(["a=one", "b=two=three"]) == {"a": "one", "b": "two=three"}


@pytest.mark.parametrize("word", ["a", "a=", "=one", "="])
def test_a_name_without_a_folder_is_refused(word):
    with pytest.raises(UsageError) as refused:
        serve._folders(["b=two", word])
    assert refused.value.message == f"--adapter {word!r} is no name with a folder"
    assert refused.value.hint == "write --adapter NAME=FOLDER"


def test_one_name_for_two_adapters_is_refused():
    with pytest.raises(UsageError, match="two adapters are called 'a'") as refused:
        serve._folders(["a=one", "a=two"])
    assert refused.value.hint == "give each a name of its own"


def test_the_key_is_of_the_file_or_else_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_API_KEY", "of the environment")
    (tmp_path / "key").write_text(" of the file\n")
    assert serve._key(tmp_path / "key").get_secret_value() == "of the file"
    assert serve._key(None).get_secret_value() == "of the environment"
    monkeypatch.delenv("ORRERY_API_KEY")
    assert serve._key(None) is None


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file or directory"), (b"\xff", "not UTF-8")])
def test_a_key_that_cannot_be_read_is_refused(content, reason, tmp_path):
    file: Path = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError) as refused:
        serve._key(file)
    assert refused.value.message == f"cannot read {file}: {reason}"
    assert refused.value.hint == "give a file with the key as its one line"


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_a_package_that_is_missing_is_named(missing, monkeypatch):
    monkeypatch.setattr(serve.importlib.util, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(MachineError, match=f"a server needs the package {missing}") as refused:
        serve.check_packages()
    assert refused.value.hint == "pip install 'orrery-lm[serve]'"
