"""GGUF files of embedders: the stream is that of transformers, the vectors are llama.cpp's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from tokenizers import pre_tokenizers

from gguf_files import rewritten
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.exporting.export import export_gguf, export_hf
from orrery.exchange.reading.read import read
from orrery.exchange.saving.import_model import import_model
from orrery.language_model.load import load
from orrery.studies.bench.llama_cpp import LlamaCpp
from tests.parity.test_gguf import round_gelu, written

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "##s", ",", ".", "dog")
PAIRS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "the")
TEXTS = ("the cat sat", "Dogs, the mats.", "the", "a dog on the mat sat on the cat")
NAMES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


def model(kind: str = "Bert", vocabulary: int = len(WORDS), length: int = 40, **config: Any) -> Any:
    """A random BERT, or one of its kin, whose numbers are as large as those of a trained one."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    sizes |= {"vocab_size": vocabulary, "max_position_embeddings": length}
    made = getattr(transformers, f"{kind}Config")(**sizes, **config)
    bert = getattr(transformers, f"{kind}Model")(made, add_pooling_layer=False).eval()
    with torch.no_grad():
        for parameter in bert.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return bert


def words(writer: gguf.GGUFWriter) -> None:
    """Write BERT's tokenizer."""
    writer.add_tokenizer_model("bert")
    special = [word.startswith("[") for word in WORDS]
    spelt = [w if c else w[2:] if w.startswith("##") else "\u2581" + w for w, c in zip(WORDS, special, strict=True)]
    writer.add_token_list(spelt)
    writer.add_token_types([3 if control else 1 for control in special])
    for role, word in {"pad": "[PAD]", "unk": "[UNK]", "bos": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}.items():
        getattr(writer, f"add_{role}_token_id")(WORDS.index(word))


def byte_pairs(writer: gguf.GGUFWriter) -> None:
    """Write RoBERTa's tokenizer."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("roberta-bpe")
    writer.add_token_list(PAIRS)
    writer.add_token_types([3] * 5 + [1] * (len(PAIRS) - 5))
    writer.add_token_merges(["t h", "th e"])
    for role, id in {"bos": 0, "pad": 1, "eos": 2, "sep": 2, "unk": 3, "mask": 4}.items():
        getattr(writer, f"add_{role}_token_id")(id)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def file_of(
    path: Path,
    bert: Any,
    pooling: int,
    tokenizer: Callable[[gguf.GGUFWriter], None] = words,
    unused: int = 0,
) -> Path:
    """Write what llama.cpp's converter writes of a BERT; of RoBERTa without the ``unused`` rows of its positions."""
    config, writer = bert.config, gguf.GGUFWriter(path, "bert")
    writer.add_context_length(config.max_position_embeddings - unused)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType(pooling))
    writer.add_token_type_count(config.type_vocab_size)
    tokenizer(writer)
    for name, tensor in bert.state_dict().items():
        stem, _, end = name.rpartition(".")
        layer, _, part = stem.removeprefix("encoder.layer.").partition(".")
        theirs = NAMES[stem] if stem in NAMES else f"blk.{layer}.{NAMES[part]}"
        writer.add_tensor(f"{theirs}.{end}", (tensor[unused:] if theirs == "position_embd" else tensor).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("config", [{}, {"type_vocab_size": 1, "layer_norm_eps": 1e-5}], ids=str)
def test_the_stream_is_that_of_the_reference(tmp_path: Path, config: dict[str, Any]) -> None:
    bert = model(**config)
    ours: Any = read(file_of(tmp_path / "x.gguf", bert, 1)).model.double()
    ids = torch.randint(0, len(WORDS), (3, 12))
    with torch.no_grad():
        assert (ours.hidden(ids) - bert.double()(ids).last_hidden_state).abs().max() < 1e-9


@pytest.mark.parametrize("pooling", [1, 2, 3])
def test_the_vectors_are_those_of_llama_cpp(tmp_path: Path, pooling: int) -> None:
    path = file_of(tmp_path / "x.gguf", model(), pooling)
    ours, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 40, 1, exact=True, embeds=True)
    round_gelu(ours.model)
    for text in TEXTS:
        tokens = reader.ask("/tokenize", content=text, add_special=True)["tokens"]
        assert ours.tokenizer.frame(text).ids == tokens
        vector = ours.embed([text])[0]
        theirs = np.array(reader.ask("/v1/embeddings", input=text)["data"][0]["embedding"])
        assert abs(float(torch.linalg.vector_norm(vector)) - 1) < 1e-5
        assert np.abs(vector.numpy() - theirs).max() < 1e-4  # the rounding of gelu


def test_a_file_of_roberta_is_read_as_llama_cpp_reads_it(tmp_path: Path) -> None:
    """Its architecture has BERT's name, and its table of positions begins where a text does."""
    roberta = model("Roberta", len(PAIRS), 42, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)
    path = file_of(tmp_path / "x.gguf", roberta, 2, byte_pairs, unused=2)
    ours, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 40, 1, exact=True, embeds=True)
    round_gelu(ours.model)
    for text in ("the cat", "a the"):
        assert ours.tokenizer.frame(text).ids == reader.ask("/tokenize", content=text, add_special=True)["tokens"]
        theirs = np.array(reader.ask("/v1/embeddings", input=text)["data"][0]["embedding"])
        assert np.abs(ours.embed([text])[0].numpy() - theirs).max() < 1e-4
    stream: Any = read(path).model.double()
    ids = torch.randint(5, len(PAIRS), (3, 12))
    with torch.no_grad():
        assert (stream.hidden(ids) - roberta.double()(ids).last_hidden_state).abs().max() < 1e-9


def test_a_decoder_that_pools_embeds_as_its_file_says(tmp_path: Path) -> None:
    """As the files of Qwen3's embedders do, with the last token."""
    plain = written(tmp_path, "f32", "qwen3")
    path = rewritten(plain, tmp_path / "pools.gguf", "F32", {"qwen3.pooling_type": 3})
    ours, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 40, 1, exact=True, embeds=True)
    for text in ("the cat sat", "on the log"):
        theirs = np.array(reader.ask("/v1/embeddings", input=text)["data"][0]["embedding"])
        assert np.abs(ours.embed([text])[0].numpy() - theirs).max() < 1e-4
    assert read(plain).sentences is None


def test_what_is_not_built_is_named(tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.gguf", model(), 1)
    with pytest.raises(ModelFileError, match=r"bert\.pooling_type = \[1\]"):
        read(rewritten(path, tmp_path / "list.gguf", "F32", {"bert.pooling_type": [1]}))
    left = {"others": lambda tensors: {name: t for name, t in tensors.items() if name != "token_types.weight"}}
    with pytest.raises(ModelFileError, match=r"1 missing: token_types\.weight"):
        read(rewritten(path, tmp_path / "types.gguf", "F32", **left))
    with pytest.raises(ModelFileError, match=r"ranks\.gguf: bert\.pooling_type = 4: only the mean"):
        read(rewritten(path, tmp_path / "ranks.gguf", "F32", {"bert.pooling_type": 4}))
    with pytest.raises(UsageError, match="GGUF"):
        export_gguf(read(path), tmp_path / "again.gguf", "f32")


def test_the_folder_made_of_a_file_gives_the_same_vectors(tmp_path: Path) -> None:
    path = file_of(tmp_path / "x.gguf", model(), 2)
    export_hf(read(path), tmp_path / "exported")
    import_model(path, tmp_path / "imported")
    places = (path, tmp_path / "exported", tmp_path / "imported")
    before, *after = (torch.stack(list(load(place, say=lambda line: None).embed(list(TEXTS)))) for place in places)
    assert all(torch.equal(vectors, before) for vectors in after)
