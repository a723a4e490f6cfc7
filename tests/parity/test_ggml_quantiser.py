"""Blocks that llama.cpp's own quantiser writes are read as the numbers that the gguf package unpacks, bit for bit."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from ggml_quantiser import QUANTISED, blocks, kind_of_q4_k_m, write_q4_k_m
from orrery.exchange.exporting.export import export_gguf
from orrery.exchange.reading.read import read
from orrery.tuning import merge
from tests.parity.test_gguf import saved

IDS = torch.randint(0, 30, (2, 12), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", QUANTISED)
def test_rounding_is_as_close_as_its_bits_allow(kind: str) -> None:
    numbers = np.random.default_rng(0).standard_normal((8, 512)).astype(np.float32)
    type_ = gguf.GGMLQuantizationType[kind]
    again = gguf.dequantize(blocks(numbers, kind), type_)
    block, size = gguf.GGML_QUANT_SIZES[type_]
    bits = 8 * size / block
    assert np.sqrt(np.mean((again - numbers) ** 2)) < 2.0 * 2.0 ** (1 - bits)


def test_a_whole_file_in_the_mixture_of_q4_k_m_is_its_unpacked_model(tmp_path: Path) -> None:
    config = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 8, "num_attention_heads": 4}
    whole = export_gguf(read(saved(tmp_path / "model", "llama", **config)), tmp_path / "f32.gguf", "f32").path
    path = write_q4_k_m(whole, tmp_path / "q4_k_m.gguf")
    kinds = {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}
    assert kinds["token_embd.weight"] == "Q6_K"
    assert [n for n in range(8) if kinds[f"blk.{n}.ffn_down.weight"] == "Q6_K"] == [0, 3, 6, 7]
    assert {kinds[f"blk.{n}.attn_q.weight"] for n in range(8)} == {"Q4_K"}
    stored = read(path)
    with torch.no_grad():
        few = stored.model.double().logits(IDS)
        unpacked = merge(stored.model).logits(IDS)
    assert (few - unpacked).abs().max() <= 1e-12 * unpacked.abs().max()
    numbers = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(path).tensors}
    down = dict(stored.model.named_parameters())["stack.blocks.0.feed_forward.branch.down.weight"]
    assert np.array_equal(down.detach().float().numpy(), numbers["blk.0.ffn_down.weight"])


def test_the_mixture_is_that_of_the_published_file() -> None:
    more = [n for n in range(30) if kind_of_q4_k_m(f"blk.{n}.attn_v.weight", 30) == "Q6_K"]
    assert more == [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 26, 27, 28, 29]
