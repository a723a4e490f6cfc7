"""The GGUF file: what is written is read, and a wrong number is never explained away by its kind."""

import importlib
import subprocess
import sys

import pytest
import torch

from orrery.checkpoints import gguf
from orrery.checkpoints.layouts import RotaryInterleaved, Shifted
from orrery.errors import MachineError, ModelFileError, UsageError

FACTS = {
    "a.whole": 7,
    "a.real": 1e-5,
    "a.yes": True,
    "a.text": "ä",
    "a.texts": ["x", "Ġy", "日"],
    "a.numbers": [1, 3, 5],
}


def tensors() -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    wide = torch.randn(6, 64, generator=rng) * torch.logspace(-9, 3, 6)[:, None]
    wide[0, 32:] = 0.0
    # Opposite to the largest magnitude, where q4_0 has no number.
    wide[5, 32:] = torch.tensor([1.0, -1.0]).repeat(16)
    return {"matrix.weight": wide, "position_embd.weight": wide[:2].clone(), "norm.weight": wide[3].clone()}


def written(path, kind):
    gguf.write_gguf(path, "llama", FACTS, tensors(), kind)
    return gguf.read_gguf(path)


@pytest.mark.parametrize("kind", gguf.KINDS)
def test_every_fact_and_tensor_comes_back(tmp_path, kind):
    content = written(tmp_path / "x.gguf", kind)
    assert {key: content.facts[key] for key in FACTS} == {**FACTS, "a.real": pytest.approx(1e-5)}
    assert content.facts["general.architecture"] == "llama"
    assert content.kinds == {"matrix.weight": kind, "position_embd.weight": "f32", "norm.weight": "f32"}
    for name, tensor in tensors().items():
        error, explained = gguf.deviation(tensor, content.tensors[name], content.kinds[name])
        assert explained, (name, error)
        assert (error == 0) == (content.kinds[name] == "f32")


@pytest.mark.parametrize("kind", gguf.KINDS)
def test_a_wrong_number_is_not_explained(tmp_path, kind):
    matrix, original = written(tmp_path / "x.gguf", kind).tensors["matrix.weight"], tensors()["matrix.weight"]
    for row in (2, 5):
        wrong = matrix.clone()
        wrong[row, 3] += 0.3 * original[row].abs().max()
        assert not gguf.deviation(original, wrong, kind)[1]
    assert not gguf.deviation(original, matrix[:, :32], kind)[1]
    assert not gguf.deviation(original, matrix.flip(0), kind)[1]


@pytest.mark.parametrize(("kind", "rounding", "steps"), [("q8_0", 0.5, 127), ("q4_0", 1.0, 8)])
def test_a_block_explains_its_own_rounding_and_no_more(kind, rounding, steps):
    peak = 3.0
    bound = peak * (rounding / steps + 2**-11) + steps * 2**-25
    original = torch.linspace(-1.0, peak, 32)[None]
    for share, explained in ((0.999, True), (1.001, False)):
        wrong = original.clone()
        wrong[0, 7] += share * bound
        assert gguf.deviation(original, wrong, kind)[1] == explained


def test_halves_are_torchs_casts(tmp_path):
    numbers = torch.tensor([[1e-41, -0.0, 1.0009765, 3.14159, 65504.0, 6e-8, 1.00390625, 1.01171875]])
    for kind, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
        gguf.write_gguf(tmp_path / kind, "llama", {}, {"x": numbers}, kind)
        assert torch.equal(gguf.read_gguf(tmp_path / kind).tensors["x"], numbers.to(dtype).float())


def test_what_a_kind_cannot_hold_is_refused_by_name():
    with pytest.raises(UsageError, match="m has rows of 33 numbers, and q8_0 stores blocks of 32"):
        gguf.check_storable({"m": torch.ones(2, 33)}, "q8_0")
    with pytest.raises(UsageError, match=r"m holds 7e\+04, beyond the range of f16"):
        gguf.check_storable({"m": torch.full((2, 32), 7e4)}, "f16")
    with pytest.raises(ModelFileError, match="v holds numbers that are not finite"):
        gguf.check_storable({"v": torch.tensor([1.0, float("nan")])}, "f32")
    gguf.check_storable({"m": torch.full((2, 32), 7e4), "v": torch.ones(33)}, "bf16")


def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch):
    def refuse(name: str):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MachineError, match="the package gguf, which is not installed") as caught:
        gguf.library()
    assert caught.value.hint == "pip install 'orrery-lm[gguf]', or pip install gguf"


def test_the_module_itself_needs_no_package():
    program = "import sys, orrery.exchange.exporting.export; assert 'gguf' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_neighbours_are_the_two_halves_in_turns_and_come_back():
    rows = torch.arange(12.0).reshape(12, 1)
    joined = RotaryInterleaved(2).join([rows])
    assert joined.flatten().tolist() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
    assert torch.equal(RotaryInterleaved(2).split(joined, [rows.shape])[0], rows)
    assert torch.equal(RotaryInterleaved(2).join([rows[:, 0]]), joined[:, 0])
    assert torch.equal(Shifted(1.0).split(Shifted(1.0).join([rows]), [rows.shape])[0], rows)
