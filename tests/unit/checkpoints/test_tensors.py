import json
import resource
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from orrery.checkpoints.tensors import DTYPES, TensorFile, read_tensors, write_tensors
from orrery.errors import ModelFileError


def tensors() -> dict[str, torch.Tensor]:
    made = {name: torch.arange(6).reshape(2, 3).to(dtype) for name, dtype in DTYPES.items()}
    return {**made, "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "turned": torch.rand(3, 4).T}


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    raw_a, raw_b = (x.contiguous().reshape(-1).view(torch.uint8) for x in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(raw_a, raw_b)


def test_reads_what_it_wrote_and_agrees_with_the_library(tmp_path: Path) -> None:
    path, written = tmp_path / "a.safetensors", tensors()
    write_tensors(path, written, {"format": "pt"})
    ours, theirs = TensorFile(path), safetensors.torch.load_file(path)
    assert ours.metadata == {"format": "pt"}
    assert ours.keys() == theirs.keys() == written.keys()
    assert all(same(ours[name], tensor) and same(theirs[name], tensor) for name, tensor in written.items())


def test_reads_a_file_of_the_library(tmp_path: Path) -> None:
    path, written = (
        tmp_path / "a.safetensors",
        {name: tensor.contiguous() for name, tensor in tensors().items()},
    )
    safetensors.torch.save_file(written, path)
    assert all(same(tensor, written[name]) for name, tensor in read_tensors(path).items())


def craft(header: object, data: bytes = bytes(8), length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(shape: list, start: int, end: int, dtype: str = "F32") -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


GOOD = {"a": entry([2], 0, 8)}
ENTRY = json.dumps(GOOD["a"]).encode()
BAD = {
    "empty file": b"",
    "length 2^62": craft(GOOD, length=2**62),
    "header of 101 MB": craft(b"{" + b" " * 101_000_000 + b"}", b""),
    "not JSON": craft(b"{nothing}"),
    "deep nesting": craft(b"[" * 1_000_000),
    "a list": craft([]),
    "NaN": craft(b'{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}}'),
    "overlap": craft({"a": entry([2], 0, 8), "b": entry([1], 4, 8)}),
    "hole": craft({"a": entry([1], 4, 8)}),
    "cut": craft(GOOD, bytes(7)),
    "extended": craft(GOOD, bytes(9)),
    "overflow": craft({"a": entry([2**40, 2**40], 0, 8)}),
    "overflow that agrees": craft({"a": entry([2**61], 0, 2**63)}),
    "unknown dtype": craft({"a": entry([2], 0, 8, "F33")}),
    "negative shape": craft({"a": entry([-2], 0, 8)}),
    "negative range": craft({"a": entry([2], -8, 0)}),
    "true as a size": craft({"a": entry([True], 0, 4)}, bytes(4)),
    "missing key": craft({"a": {"dtype": "F32", "shape": [2]}}),
    "duplicate key": craft(b'{"a":' + ENTRY + b',"a":' + ENTRY + b"}"),
    "metadata of numbers": craft({**GOOD, "__metadata__": {"a": 1}}),
    "100,000 tensors": craft({str(n): entry([0], 0, 0) for n in range(100_000)}, b""),
    "20,001 tensors": craft({str(n): entry([0], 0, 0) for n in range(20_001)}, b""),
}


@pytest.mark.parametrize("name", BAD)
def test_refuses_a_hostile_file_quickly_and_in_little_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(BAD[name])
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with pytest.raises(ModelFileError, match=r"hostile\.safetensors") as caught:
        read_tensors(path)
    assert time.perf_counter() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    assert caught.value.hint


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="missing"):
        read_tensors(tmp_path / "no.safetensors")


def test_writes_an_empty_tensor_that_numpy_made(tmp_path: Path) -> None:
    path, written = (
        tmp_path / "a.safetensors",
        {"none": torch.from_numpy(np.array([], np.float64)), "one": torch.ones(1)},
    )
    write_tensors(path, written)
    assert safetensors.torch.load_file(path)["none"].shape == read_tensors(path)["none"].shape == (0,)
