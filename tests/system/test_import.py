"""Pickles: only when allowed, only tensors, and never in this process."""

import io
import json
import os
import pickle
import re
import subprocess
import sys
import time
import zipfile
from collections import OrderedDict

import pytest
import torch
import transformers

import programs
from orrery.checkpoints.tensors import read_tensors
from orrery.cli.program import run
from orrery.exchange.reading import unpickle
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.import_model import import_model
from tiny_models import TOKENIZER, saved

ALLOW = "--allow-pickle"


@pytest.fixture
def safe(tmp_path):
    return saved(tmp_path / "safe", "gpt2", torch.bfloat16)


@pytest.fixture
def pickled(tmp_path, safe):
    """The same model as its authors would have written it before safetensors."""
    model = transformers.AutoModelForCausalLM.from_pretrained(safe, dtype=torch.bfloat16)
    folder = tmp_path / "pickled"
    model.config.save_pretrained(folder)
    TOKENIZER.save(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def called(*words, capsys):
    code = run(["import", *map(str, words)])
    return code, capsys.readouterr()


def test_without_the_flag_the_command_is_named(pickled, tmp_path, capsys):
    code, printed = called(pickled, tmp_path / "out", capsys=capsys)
    assert code == 4  # as every other verb says of a pickle
    assert "is a pickle, which can run any code" in printed.err
    assert f"orrery import {pickled} {tmp_path / 'out'} --allow-pickle" in printed.err
    assert not (tmp_path / "out").exists()
    assert run(["score", str(pickled), "text"]) == 4
    assert "--allow-pickle" in capsys.readouterr().err


def test_a_pickle_becomes_the_same_model(pickled, safe, tmp_path, capsys):
    code, printed = called(pickled, tmp_path / "out", ALLOW, capsys=capsys)
    assert (code, printed.out) == (0, f"{tmp_path / 'out'}\n")
    assert "read back equal bit for bit" in printed.err
    assert not list((tmp_path / "out").glob("*.bin"))
    before, after = (read_tensors(folder / "model.safetensors") for folder in (safe, tmp_path / "out"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) and after[name].dtype == torch.bfloat16 for name in before)
    assert read(tmp_path / "out").tokenizer.fingerprint == TOKENIZER.fingerprint
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").lm_head.weight.shape[0] == TOKENIZER.size


def test_shards_are_the_whole(pickled, tmp_path, capsys):
    state = torch.load(pickled / "pytorch_model.bin", weights_only=True)
    (pickled / "pytorch_model.bin").unlink()
    places = {name: f"pytorch_model-0000{i % 2 + 1}-of-00002.bin" for i, name in enumerate(state)}
    for shard in set(places.values()):
        torch.save({name: state[name] for name in state if places[name] == shard}, pickled / shard)
    (pickled / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    stored = import_model(pickled, tmp_path / "out", allow_pickle=True)
    again = weights_of(read(tmp_path / "out").model)
    assert all(torch.equal(tensor, again[name]) for name, tensor in weights_of(stored.model).items())
    (pickled / "pytorch_model-00002-of-00002.bin").unlink()
    assert run(["import", str(pickled), str(tmp_path / "other"), ALLOW]) == 4
    assert "lacks pytorch_model-00002-of-00002.bin" in capsys.readouterr().err


@pytest.mark.parametrize("wrapper", ["state_dict", "model_state_dict"])
def test_a_wrapped_state_in_a_file_of_another_name(pickled, tmp_path, wrapper):
    state = torch.load(pickled / "pytorch_model.bin", weights_only=True)
    (pickled / "pytorch_model.bin").unlink()
    torch.save({wrapper: state, "epoch": 3}, pickled / "best.pt")
    torch.save({"step": 3}, pickled / "last.pt")
    torch.save({"step": 3}, pickled / "optimizer.pt")
    assert run(["import", str(pickled), str(tmp_path / "a"), ALLOW]) == 4  # which of the two?
    assert run(["import", str(pickled / "best.pt"), str(tmp_path / "a"), ALLOW]) == 0


def test_safetensors_need_no_flag_and_a_full_folder_is_left_alone(safe, tmp_path):
    (safe / "pytorch_model.bin").write_bytes(pickle.dumps(Call(os.mknod, (str(safe / "executed"),))))
    assert run(["import", str(safe), str(tmp_path / "out")]) == 0
    assert run(["import", str(safe), str(tmp_path / "out")]) == 2
    assert not (safe / "executed").exists()


class Call:
    def __init__(self, function, arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def hostile(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)


def inflating(size):
    """A file of torch's format whose one storage is compressed: small on the disk, large in memory."""
    plain = io.BytesIO()
    torch.save({"a": torch.zeros(size // 4)}, plain)
    small = io.BytesIO()
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    return small.getvalue()


CASES = {
    "code": (lambda mark: {"a": Call(os.mknod, (mark,))}, r"it wants to call posix\.mknod, which is code"),
    "code without a wrapper": (lambda mark: pickle.dumps(Call(os.system, (f"touch {mark}",)), 2), "which is code"),
    "a new protocol": (lambda mark: pickle.dumps(Call(os.mknod, (mark,)), 5), "instructions that make no tensors"),
    "code in an old format": (lambda mark: pickle.dumps(Call(os.mknod, (mark,)), protocol=0), "which is code"),
    "numbers": (lambda mark: {"a": 1}, "is a int, not a tensor"),
    "nothing": (lambda mark: OrderedDict(), "no tensors by name"),
    "a list": (lambda mark: [torch.zeros(2)], "no tensors by name"),
    "noise": (lambda mark: bytes(range(256)) * 9, ""),
    "an empty file": (lambda mark: b"", ""),
    "inflating": (lambda mark: inflating(500_000_000), ""),
}


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("name", [name for name in CASES if name != "inflating"])
def test_only_tensors_come_out_of_a_pickle(name, tmp_path):
    """In this process: torch's restricted reader is the first wall, and it holds alone."""
    mark = tmp_path / "executed"
    content, says = CASES[name]
    hostile(tmp_path / "a.bin", content(str(mark)))
    with pytest.raises((pickle.UnpicklingError, ValueError, EOFError, RuntimeError)) as caught:
        unpickle.convert(tmp_path / "a.bin", tmp_path / "a.safetensors")
    assert re.search(says, unpickle.reason(caught.value))
    assert not mark.exists()


@pytest.mark.parametrize("name", ["code", "inflating"])
def test_a_hostile_pickle_is_refused_and_nothing_runs(name, pickled, tmp_path, capsys):
    mark = tmp_path / "executed"
    content, says = CASES[name]
    hostile(pickled / "pytorch_model.bin", content(str(mark)))
    start = time.perf_counter()
    code, printed = called(pickled, tmp_path / "out", ALLOW, capsys=capsys)
    assert time.perf_counter() - start < 20
    assert code == 4
    assert len(printed.err.splitlines()) == 3  # converting, error, hint
    assert re.search(f"was not converted: .*{says}", printed.err), printed.err
    assert not mark.exists()
    assert not (tmp_path / "out").exists()


DOORS = """
import os, socket, subprocess, sys
from pathlib import Path
from orrery.exchange.reading import unpickle
mark = Path(sys.argv[1])
unpickle._watch(mark / "allowed")
(mark / "allowed").write_text("x")
for door in (
    lambda: socket.socket(),
    lambda: subprocess.run(["true"]),
    lambda: os.system("true"),
    lambda: os.fork(),
    lambda: (mark / "other").write_text("x"),
    lambda: os.open(mark / "other", os.O_CREAT | os.O_WRONLY),
    lambda: (mark / "allowed").unlink(),
    lambda: os.rename(mark / "allowed", mark / "other"),
):
    try:
        door()
    except PermissionError as error:
        assert "the file tried" in str(error), error
    else:
        raise SystemExit("open")
print(sorted(path.name for path in mark.iterdir()))
"""


def test_the_process_has_no_way_out(tmp_path):
    command = [sys.executable, "-c", DOORS, str(tmp_path)]
    done = programs.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("['allowed']\n", "", 0)


def test_the_kernel_takes_the_network_away_where_it_can(tmp_path):
    program = (
        "import os, socket\nfrom orrery.exchange.reading import unpickle\n"
        "before = os.readlink('/proc/self/ns/net')\nunpickle._leave_the_network()\n"
        "print(before != os.readlink('/proc/self/ns/net'), [name for _, name in socket.if_nameindex()])"
    )
    done = programs.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    moved, _, interfaces = done.stdout.partition(" ")
    if moved == "False":
        pytest.skip("this kernel gives no network namespaces to this user")
    assert interfaces.strip() in ("['lo']", "[]")


def test_memory_is_bounded(tmp_path):
    program = (
        "import torch\nfrom orrery.exchange.reading import unpickle\nunpickle._bound(1_000_000)\n"
        "torch.zeros(50_000_000, dtype=torch.uint8)\ntorch.zeros(500_000_000, dtype=torch.uint8)"
    )
    done = programs.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "allocate" in done.stderr


def test_no_key_of_ours_reaches_the_process(pickled, tmp_path, monkeypatch):
    seen = {}

    def spy(command, env, **kwargs):
        seen.update(env)
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setattr("orrery.exchange.saving.import_model.subprocess.run", spy)
    assert run(["import", str(pickled), str(tmp_path / "out"), ALLOW]) == 4
    assert "PATH" in seen
    assert "secret" not in seen.values()
