"""GGUF files of embedders: the stream is that of transformers, the vectors are llama.cpp's."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from tokenizers import pre_tokenizers

from gguf_files import finish, rewritten
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
    head: Mapping[str, torch.Tensor] | None = None,
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
        if stem.startswith("pooler"):
            continue
        layer, _, part = stem.removeprefix("encoder.layer.").partition(".")
        theirs = NAMES[stem] if stem in NAMES else f"blk.{layer}.{NAMES[part]}"
        writer.add_tensor(f"{theirs}.{end}", (tensor[unused:] if theirs == "position_embd" else tensor).numpy())
    for name, tensor in (head or {}).items():
        writer.add_tensor(name, tensor.numpy())
    finish(writer)
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


@pytest.mark.parametrize("strips", [None, True, False])
@pytest.mark.parametrize("lowers", [None, True, False])
def test_words_are_lowered_and_lose_accents_where_llama_cpp_does_so(
    lowers: bool | None, strips: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spelt = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "The", "cafe", "café", "Café", "Cafe", "é", "e", "E")
    monkeypatch.setitem(words.__globals__, "WORDS", spelt)
    facts = {"tokenizer.ggml.normalizer.lowercase": lowers, "tokenizer.ggml.normalizer.strip_accents": strips}
    plain = file_of(tmp_path / "plain.gguf", model(vocabulary=len(spelt)), 1)
    path = rewritten(plain, tmp_path / "x.gguf", "F32", facts)
    ours, reader = read(path).tokenizer, LlamaCpp(path, "", 1, 40, 1, exact=True, embeds=True)
    for text in ("The", "Café", "É"):
        assert ours.encode(text) == reader.ask("/tokenize", content=text, add_special=False)["tokens"]


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


MODERN = {
    "embeddings.tok_embeddings": "token_embd",
    "embeddings.norm": "token_embd_norm",
    "final_norm": "output_norm",
    "attn_norm": "attn_norm",
    "attn.Wqkv": "attn_qkv",
    "attn.Wo": "attn_output",
    "mlp_norm": "ffn_norm",
    "mlp.Wi": "ffn_up",
    "mlp.Wo": "ffn_down",
}


def modern(path: Path, window: int, pooling: int = 1) -> Any:
    """Write what llama.cpp's converter writes of a random ModernBERT, and return the model."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 32}
    config = transformers.ModernBertConfig(
        vocab_size=len(PAIRS), max_position_embeddings=40, local_attention=window, **sizes,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, cls_token_id=0, sep_token_id=2,
    )  # fmt: skip
    bert, writer = transformers.ModernBertModel(config).eval(), gguf.GGUFWriter(path, "modern-bert")
    writer.add_context_length(40)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(32)
    writer.add_block_count(4)
    writer.add_head_count(4)
    writer.add_layer_norm_eps(1e-5)
    writer.add_rope_freq_base(160_000.0)
    writer.add_rope_freq_base_swa(10_000.0)
    writer.add_sliding_window(window)
    writer.add_sliding_window_pattern(3)
    writer.add_rope_scaling_type(gguf.RopeScalingType.NONE)
    writer.add_vocab_size(len(PAIRS))
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType(pooling))
    byte_pairs(writer)
    for name, tensor in bert.state_dict().items():
        tensor.add_(0.3 * torch.randn_like(tensor))
        stem, _, end = name.rpartition(".")
        layer, _, part = stem.removeprefix("layers.").partition(".")
        writer.add_tensor(f"{MODERN[stem] if stem in MODERN else f'blk.{layer}.{MODERN[part]}'}.{end}", tensor.numpy())
    finish(writer)
    return bert


@pytest.mark.parametrize(("window", "pooling"), [(4, 1), (64, 2)])
def test_a_file_of_modernbert_is_that_of_its_makers_and_of_llama_cpp(window: int, pooling: int, tmp_path: Path) -> None:
    bert = modern(tmp_path / "x.gguf", window, pooling)
    ours, text = load(tmp_path / "x.gguf", say=lambda line: None), "the cat sat there"
    reader = LlamaCpp(tmp_path / "x.gguf", "", 1, 40, 1, exact=True, embeds=True)
    tokens = reader.ask("/tokenize", content=text, add_special=True)["tokens"]
    assert ours.tokenizer.frame(text).ids == tokens
    with torch.no_grad():  # in float64, but for the angles of the reference
        stream = read(tmp_path / "x.gguf").model.double().hidden(torch.tensor([tokens]))
        assert (stream - bert.double()(torch.tensor([tokens])).last_hidden_state).abs().max() < 1e-5
    round_gelu(ours.model)
    theirs = np.array(reader.ask("/v1/embeddings", input=text)["data"][0]["embedding"])
    assert np.abs(ours.embed([text])[0].numpy() - theirs).max() < 1e-3  # the rounding of gelu
    import_model(tmp_path / "x.gguf", tmp_path / "imported")
    again = transformers.AutoModel.from_pretrained(tmp_path / "imported").eval().double()
    with torch.no_grad():
        assert (again(torch.tensor([tokens])).last_hidden_state - stream).abs().max() < 1e-5


def reranker(kind: str, vocabulary: int, **config: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    """A random encoder with a head of one number, and the head's tensors under llama.cpp's names."""
    bert = model(kind, vocabulary, num_labels=1, **config)
    whole = getattr(transformers, f"{kind}ForSequenceClassification")(bert.config).eval()
    base = getattr(whole, whole.base_model_prefix)
    base.load_state_dict(bert.state_dict(), strict=False)
    parts = (
        (base.pooler.dense, whole.classifier) if kind == "Bert" else (whole.classifier.dense, whole.classifier.out_proj)
    )
    for part in parts:
        torch.nn.init.normal_(part.weight, std=0.5)
        torch.nn.init.normal_(part.bias)
    return whole, {
        f"{name}.{end}": getattr(part, end).detach()
        for name, part in zip(("cls", "cls.output"), parts, strict=True)
        for end in ("weight", "bias")
    }


@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
def test_a_reranker_gives_pairs_the_numbers_of_its_makers(kind: str, tmp_path: Path) -> None:
    """And llama.cpp's where a model has one type of tokens: it gives both texts the first."""
    settings: dict[str, Any] = {"length": 42, "layer_norm_eps": 1e-5, "pad_token_id": 1}
    size, unused, tokens = (len(WORDS), 0, words) if kind == "Bert" else (len(PAIRS), 2, byte_pairs)
    types = {"type_vocab_size": 2 if kind == "Bert" else 1}
    whole, head = reranker(kind, size, **types, **({} if kind == "Bert" else settings))
    bert = getattr(whole, whole.base_model_prefix)
    path = file_of(tmp_path / "x.gguf", bert, 4, tokens, unused, head)
    ours, pairs = load(path, say=lambda line: None), [("the cat", text) for text in ("the cat sat", "a dog", "mat")]
    assert ours.ranks
    for (query, text), scored in zip(pairs, ours.pair_scores(pairs), strict=True):
        framed = ours.tokenizer.frame(query, text)
        given = {"input_ids": torch.tensor([framed.ids]), "token_type_ids": torch.tensor([framed.token_types])}
        with torch.no_grad():
            assert abs(float(scored.score) - float(whole(**given).logits.sigmoid())) < 1e-5
    if kind == "Roberta":
        round_gelu(ours.model)
        reader = LlamaCpp(path, "", 1, 40, 1, exact=True, ranks=True)
        answer = reader.ask("/v1/rerank", query="the cat", documents=[text for _, text in pairs])
        theirs = {one["index"]: one["relevance_score"] for one in answer["results"]}
        for number, scored in enumerate(ours.pair_scores(pairs)):
            assert abs(float(scored.score) - float(torch.tensor(theirs[number]).sigmoid())) < 1e-4  # gelu's rounding
    import_model(path, tmp_path / "imported")
    again = load(tmp_path / "imported", say=lambda line: None)
    before = load(path, say=lambda line: None).pair_scores(pairs)
    assert [one.score for one in again.pair_scores(pairs)] == [one.score for one in before]


def test_what_a_head_lacks_or_has_besides_is_named(tmp_path: Path) -> None:
    whole, head = reranker("Roberta", len(PAIRS), length=42, layer_norm_eps=1e-5, pad_token_id=1, type_vocab_size=1)
    path = file_of(tmp_path / "x.gguf", whole.roberta, 4, byte_pairs, 2, head)
    named = rewritten(path, tmp_path / "named.gguf", "F32", {"bert.classifier.output_labels": ["fits"]})
    pairs = [("the cat", "a dog")]
    scores = [load(place, say=lambda line: None).pair_scores(pairs)[0].score for place in (path, named)]
    assert torch.equal(*scores)
    with pytest.raises(ModelFileError, match=r"gelu\.gguf: classifier\.activation = gelu is not built; tanh"):
        read(rewritten(path, tmp_path / "gelu.gguf", "F32", {"bert.classifier.activation": "gelu"}))
    # As in files of BERTs, whose pooler the converter left out.
    left = {
        "others": lambda tensors: {name: t for name, t in tensors.items() if not name.startswith(("cls.w", "cls.b"))}
    }
    with pytest.raises(ModelFileError, match=r"missing: cls\.weight, cls\.bias"):
        read(rewritten(path, tmp_path / "less.gguf", "F32", **left))
    parted = rewritten(path, tmp_path / "parted.gguf", "F32", {"tokenizer.ggml.add_sep_token": False})
    whole_frame, frame = (read(place).tokenizer.frame("the", "a").ids for place in (path, parted))
    assert (whole_frame.count(2), frame.count(2)) == (3, 2)


def test_a_decoder_that_pools_embeds_as_its_file_says(tmp_path: Path) -> None:
    """As the files of Qwen3's embedders do, with the last token."""
    plain = written(tmp_path, "f32", "qwen3")
    path = rewritten(plain, tmp_path / "pools.gguf", "F32", {"qwen3.pooling_type": 3})
    ours, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 40, 1, exact=True, embeds=True)
    for text in ("the cat sat", "on the log"):
        theirs = np.array(reader.ask("/v1/embeddings", input=text)["data"][0]["embedding"])
        assert np.abs(ours.embed([text])[0].numpy() - theirs).max() < 1e-4
    assert read(plain).sentences is None


@pytest.mark.parametrize("activation", ["gelu", "gelu_pytorch_tanh", "silu"])
def test_the_activation_of_modernbert_is_that_of_the_file(activation: str, tmp_path: Path) -> None:
    modern(tmp_path / "x.gguf", 4)
    named = {"modern-bert.hidden_activation": activation}
    path = rewritten(tmp_path / "x.gguf", tmp_path / "y.gguf", "F32", named)
    ours, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 40, 1, exact=True, embeds=True)
    round_gelu(ours.model)
    theirs = np.array(reader.ask("/v1/embeddings", input="the cat")["data"][0]["embedding"])
    assert np.abs(ours.embed(["the cat"])[0].numpy() - theirs).max() < 1e-3  # the rounding of gelu
    with pytest.raises(ModelFileError, match=r"hidden_activation = quick_gelu is not built"):
        read(rewritten(path, tmp_path / "z.gguf", "F32", {"modern-bert.hidden_activation": "quick_gelu"}))


POOLED = {"mean": {}, "cls": {"modern-bert.classifier.pooling_type": 2}}


def modern_reranker(path: Path, pooling: str, activation: str = "gelu") -> Any:
    """Write the file of a random ModernBERT with a head of one number, and return the model."""
    bert = modern(path.with_name("bare.gguf"), 4, 4)
    config = bert.config
    config.num_labels, config.classifier_pooling, config.classifier_activation = 1, pooling, activation
    whole = transformers.ModernBertForSequenceClassification(config).eval()
    whole.model.load_state_dict(bert.state_dict())
    head = {"cls": whole.head.dense, "cls.norm": whole.head.norm, "cls.output": whole.classifier}
    made = {f"{theirs}.{end}": tensor for theirs, part in head.items() for end, tensor in part.state_dict().items()}
    for tensor in made.values():
        tensor.add_(0.3 * torch.randn_like(tensor))
    facts = POOLED[pooling] | ({} if activation == "gelu" else {"modern-bert.classifier.activation": activation})
    rewritten(path.with_name("bare.gguf"), path, "F32", facts, others=lambda tensors: {**tensors, **made})
    return whole


@pytest.mark.parametrize(("pooling", "activation"), [("mean", "gelu"), ("cls", "gelu"), ("mean", "tanh")])
def test_modernbert_with_a_head_gives_pairs_the_numbers_of_its_makers_and_of_llama_cpp(
    pooling: str, activation: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.gguf"
    whole = modern_reranker(path, pooling, activation)
    ours, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 40, 1, exact=True, ranks=True)
    texts = ["the cat sat", "a dog", "mat"]
    pairs = [("the cat", text) for text in texts]
    for (query, text), scored in zip(pairs, ours.pair_scores(pairs), strict=True):
        with torch.no_grad():
            logit = whole(torch.tensor([ours.tokenizer.frame(query, text).ids])).logits
        assert abs(float(scored.score) - float(logit.sigmoid())) < 1e-5
    round_gelu(ours.model)
    answer = reader.ask("/v1/rerank", query="the cat", documents=texts)
    theirs = {one["index"]: one["relevance_score"] for one in answer["results"]}
    for number, scored in enumerate(ours.pair_scores(pairs)):
        assert abs(float(scored.score) - float(torch.tensor(theirs[number]).sigmoid())) < 1e-3  # gelu's rounding
    import_model(path, tmp_path / "imported")
    again = load(tmp_path / "imported", say=lambda line: None).pair_scores(pairs)
    assert [one.score for one in again] == [one.score for one in load(path, say=lambda line: None).pair_scores(pairs)]


def test_what_the_head_of_modernbert_lacks_or_does_otherwise_is_named(tmp_path: Path) -> None:
    modern_reranker(tmp_path / "x.gguf", "mean")
    last = {"modern-bert.classifier.pooling_type": 3}
    with pytest.raises(ModelFileError, match=r"last\.gguf: classifier\.pooling_type = 3 is not built; 1 and 2 are"):
        read(rewritten(tmp_path / "x.gguf", tmp_path / "last.gguf", "F32", last))
    less = {"others": lambda tensors: {name: t for name, t in tensors.items() if name != "cls.norm.weight"}}
    with pytest.raises(ModelFileError, match=r"1 missing: cls\.norm\.weight"):
        read(rewritten(tmp_path / "x.gguf", tmp_path / "less.gguf", "F32", **less))
    with pytest.raises(ModelFileError, match=r"bare\.gguf: modern-bert\.pooling_type = 4: only the mean"):
        read(tmp_path / "bare.gguf")


TOLD = (
    "<|endoftext|>system\nJudge \"yes\" or 'no' \\ {{ é.\n<Query>: {query}\n<Document>: {document}<|endoftext|>"
    "assistant\n<think>\n\n</think>\n\n"
)
RANKS = {
    "qwen3.pooling_type": 4,
    "qwen3.classifier.output_labels": ["yes", "no"],
    "tokenizer.ggml.padding_token_id": 0,
    "tokenizer.chat_template": "{{ messages }}",
    "tokenizer.chat_template.rerank": TOLD,
}


def with_rows(tensors: Mapping[str, torch.Tensor], rows: tuple[int, ...] = (70, 75)) -> dict[str, torch.Tensor]:
    """Give a decoder the rows of these words as its head, as the converter of Qwen3's rerankers does."""
    return {**tensors, "cls.output.weight": tensors["token_embd.weight"][list(rows)]}


def decoder_that_ranks(folder: Path) -> tuple[Path, Path]:
    """Return the file of a random Qwen3 that ranks, and the folder of the language model that it was."""
    plain = written(folder, "f32", "qwen3", tie_word_embeddings=True, max_position_embeddings=256)
    return rewritten(plain, folder / "ranks.gguf", "F32", RANKS, others=with_rows), folder / "model"


def test_a_decoder_that_ranks_gives_pairs_the_numbers_of_its_makers_and_of_llama_cpp(tmp_path: Path) -> None:
    """As Qwen3's rerankers do: how much likelier the next word is yes than no, behind a prompt with both texts."""
    path, folder = decoder_that_ranks(tmp_path)
    ours, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 256, 1, exact=True, ranks=True)
    texts = ["the cat sat", "dog {x}", "日本 the mat"]
    pairs = [("the cat", text) for text in texts]
    answer = reader.ask("/v1/rerank", query="the cat", documents=texts)
    theirs = {one["index"]: one["relevance_score"] for one in answer["results"]}
    makers = transformers.AutoModelForCausalLM.from_pretrained(folder).double()
    with torch.no_grad():
        scored = ours.pair_scores(pairs)
        for number, (query, text) in enumerate(pairs):
            told = TOLD.replace("{query}", query).replace("{document}", text)
            ids = reader.ask("/tokenize", content=told, parse_special=True, add_special=False)["tokens"]
            yes, no = makers(torch.tensor([ids])).logits[0, -1, [70, 75]]
            assert scored[number].tokens == len(ids)
            assert abs(float(scored[number].score) - float((yes - no).sigmoid())) < 1e-5
            assert abs(float(scored[number].score) - theirs[number]) < 1e-5
    assert max(float(one.score) for one in scored) - min(float(one.score) for one in scored) > 1e-3
    assert [one.index for one in ours.rank("the cat", texts)] == [one["index"] for one in answer["results"]]
    import_model(path, tmp_path / "imported")
    again = load(tmp_path / "imported", say=lambda line: None).pair_scores(pairs)
    assert [one.score for one in again] == [one.score for one in scored]
    one_row = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "imported")
    assert (one_row.config.num_labels, one_row.config.pad_token_id) == (1, 0)


def test_a_decoder_whose_head_is_another_is_named(tmp_path: Path) -> None:
    path, _ = decoder_that_ranks(tmp_path)
    turned = {"qwen3.classifier.output_labels": ["no", "yes"]}
    with pytest.raises(ModelFileError, match=r"turned\.gguf: qwen3\.classifier\.output_labels = \['no', 'yes'\]"):
        read(rewritten(path, tmp_path / "turned.gguf", "F32", turned))
    three = {"others": lambda tensors: with_rows(tensors, (70, 75, 80))}
    with pytest.raises(ModelFileError, match=r"three\.gguf: cls\.output\.weight has 3 rows"):
        read(rewritten(path, tmp_path / "three.gguf", "F32", **three))
    less = {"others": lambda tensors: {name: t for name, t in tensors.items() if name != "cls.output.weight"}}
    with pytest.raises(ModelFileError, match=r"less\.gguf: qwen3\.pooling_type = 4: only the mean"):
        read(rewritten(path, tmp_path / "less.gguf", "F32", **less))
    with pytest.raises(UsageError, match=r"has no place for heads\.sequence\.labels\.weight"):
        export_gguf(read(path), tmp_path / "again.gguf", "f32")


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
