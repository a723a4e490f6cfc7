"""GGUF files that others write: their tensors, facts and tokenizers are read as the files' own programs read them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import pytest
import tokenizers
import torch
import transformers
from tokenizers import pre_tokenizers

from gguf_files import BY_NAME, _type, finish, rewritten
from orrery.checkpoints.gguf_file import PLAIN, GgufFile
from orrery.checkpoints.rules import to_theirs
from orrery.errors import ModelFileError
from orrery.exchange.exporting.export import export_gguf
from orrery.exchange.exporting.quantised import quantise
from orrery.exchange.reading.gguf_architectures import ARCHITECTURES
from orrery.exchange.reading.gguf_learned import as_facts, is_learned
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.import_model import import_model
from orrery.kernels.step.codes import BLOCKS
from orrery.language_model.load import load
from orrery.studies.bench.llama_cpp import LlamaCpp
from orrery.text.gguf.rules import RULES
from orrery.text.tokenizer import Tokenizer
from orrery.tuning import matrix_of, merge, numbers_of
from tests.parity.test_gguf import (
    ALIKE,
    BOUNDS,
    EXPERTS,
    FAMILIES,
    FURTHER,
    FURTHER_CORNERS,
    KNOWN,
    LONGROPE,
    MIXTURES,
    YARN,
    distance,
    saved,
    trained,
    written,
)
from tiny_models import TOKENIZER

IDS = torch.randint(0, 30, (2, 12), generator=torch.Generator().manual_seed(0))
WIDE: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 256, "n_head": 4, "n_inner": 512, "n_layer": 1},
    "bloom": {"hidden_size": 256, "n_head": 4, "n_layer": 1},
}
FOR_ALL = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4}


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.logits(IDS)


@pytest.mark.parametrize(("family", "config"), [*KNOWN, *FURTHER_CORNERS], ids=str)
def test_our_own_export_is_the_same_model_again(tmp_path: Path, family: str, config: dict[str, Any]) -> None:
    path = written(tmp_path, "f32", family, **config)
    again, before = read(path), read(tmp_path / "model")
    slowed = (config.get("rope_scaling") or {}).get("rope_type") == "llama3"
    error = (logits(again.model) - logits(before.model)).abs().max()
    # Rates of state spaces are stored as they are, and ours are their logarithms.
    rounded = slowed or any(name.endswith(("a_log", "pace")) for name, _ in before.model.named_parameters())
    assert error <= (1e-5 if rounded else 0.0)
    assert again.family == ("llama" if family in ("internlm3", "mistral") else family)
    assert again.tokenizer is not None
    assert before.tokenizer is not None
    for text in ("the cat sat", "日本 ö\n\n 12", "<|endoftext|>"):
        assert again.tokenizer.frame(text) == before.tokenizer.frame(text)
    assert again.tokenizer.roles["end"] == before.tokenizer.roles["end"]
    assert again.name == "f32"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file in float32 of each family, with rows of 256 numbers."""
    files = {}
    for family in FAMILIES:
        folder = tmp_path_factory.mktemp(family)
        config = WIDE.get(family, FOR_ALL)
        files[family] = export_gguf(read(saved(folder / "model", family, **config)), folder / "x.gguf", "f32").path
    return files


UNPACKED = [name for name in BY_NAME if name not in PLAIN and name not in ("Q8_1", "Q8_K", "Q1_0")]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", UNPACKED)
def test_every_kind_in_every_architecture_is_the_unpacked_model(
    family: str, kind: str, plain: dict[str, Path], tmp_path: Path
) -> None:
    path = rewritten(plain[family], tmp_path / "x.gguf", kind)
    stored, theirs = read(path), gguf.GGUFReader(path)
    stays = {name for name, p in stored.model.named_parameters() if p.dtype == torch.uint8}
    assert bool(stays) == (kind in BLOCKS)
    few, count = logits(stored.model), numbers_of(stored.model)
    wide = logits(stored.model.double())
    whole = merge(stored.model)
    assert count == sum(parameter.numel() for parameter in whole.parameters())
    assert not [name for name, p in whole.named_parameters() if p.dtype == torch.uint8]
    assert (wide - logits(whole)).abs().max() <= 1e-12 * wide.abs().max()
    assert (few - wide).abs().max() <= 1e-4 * wide.abs().max()
    numbers = {t.name: torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).copy()) for t in theirs.tensors}
    table = dict(whole.named_parameters())["embed.token.weight"]
    assert torch.equal(table.float(), numbers["token_embd.weight"])
    down = dict(whole.named_parameters())["stack.blocks.0.feed_forward.branch.down.weight"]
    assert torch.equal(down.float(), numbers["blk.0.ffn_down.weight"])


@pytest.mark.parametrize("family", FURTHER)
def test_blocks_in_further_architectures_are_the_unpacked_model(family: str, tmp_path: Path) -> None:
    plain = export_gguf(read(saved(tmp_path / "model", family)), tmp_path / "x.gguf", "f32").path
    path = rewritten(plain, tmp_path / "y.gguf", "Q4_0")
    stored, theirs = read(path), gguf.GGUFReader(path)
    kinds = {name: p.dtype for name, p in stored.model.named_parameters()}
    assert torch.uint8 in kinds.values()
    experts = {kind for name, kind in kinds.items() if ".experts." in name and name.endswith(".weight")}
    assert experts <= {torch.uint8}
    joined = {"gpt_bigcode": "attention.branch.v", "phi3": "feed_forward.branch.up", "glm4": "feed_forward.branch.gate"}
    if family in joined:  # rows of a matrix that is one with others in the file
        assert kinds[f"stack.blocks.0.{joined[family]}.weight"] == torch.uint8
    wide = logits(stored.model.double())
    whole = merge(stored.model)
    assert (wide - logits(whole)).abs().max() <= 1e-12 * wide.abs().max()
    numbers = {t.name: torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).copy()) for t in theirs.tensors}
    spec: Any = whole.spec
    ours = to_theirs(weights_of(whole), ARCHITECTURES[stored.family].rules(spec))
    learned = {name: ours.pop(name) for name in list(ours) if is_learned(name)}
    assert as_facts(learned) == {fact: GgufFile(path).facts[fact] for fact in as_facts(learned)}
    assert ours.keys() == numbers.keys()
    for name, tensor in ours.items():
        rates = name.endswith("ssm_a")
        assert torch.equal(tensor.float(), numbers[name]) or (rates and torch.allclose(tensor.float(), numbers[name]))


@pytest.mark.parametrize("kind", BLOCKS)
def test_llama_cpp_continues_alike_from_blocks(kind: str, plain: dict[str, Path], tmp_path: Path) -> None:
    """It rounds what is multiplied with a block to eight bits too, and so may choose another token of two near ones."""
    path = rewritten(plain["llama"], tmp_path / "x.gguf", kind, only=lambda name: name.startswith("blk"))
    assert continued_alike(path, load(path, say=lambda line: None)) >= 2


def continued_alike(path: Path, lm: Any) -> int:
    """Return how many of three prompts llama.cpp continues with the same token; its probabilities must be near."""
    reader = LlamaCpp(path, "", 1, 64, 1, exact=True)
    alike = 0
    for text in ("the cat sat", "dog", "on the log"):
        told = reader.ask("/completion", prompt=text, n_predict=1, temperature=0, n_probs=5, return_tokens=True)
        (top,) = told["completion_probabilities"]
        ours = lm.logits([lm.tokenizer.encode(text)])[0, -1].log_softmax(-1)
        theirs = {entry["id"]: entry["logprob"] for entry in top["top_logprobs"]}
        assert max(abs(float(ours[id]) - value) for id, value in theirs.items()) < 0.2
        alike += int(ours.argmax()) == told["tokens"][0]
    return alike


QUANTISED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("llama", {"bits": 4}),
    ("llama", {"bits": 4, "group": 128, "eight": ("*.v", "*.down")}),
    ("llama", {"bits": 8, "head": None}),
    ("gpt2", {"bits": 4, "eight": ("*.v",)}),  # q, k and v are one tensor of the file
    ("mixtral", {"bits": 4}),
)


@pytest.mark.parametrize(("family", "settings"), QUANTISED, ids=str)
def test_quantised_matrices_are_the_same_in_blocks(family: str, settings: dict[str, Any], tmp_path: Path) -> None:
    saved(tmp_path / "model", family, **WIDE.get(family, FOR_ALL))
    quantise(tmp_path / "model", tmp_path / "small", **settings)
    stored = read(tmp_path / "small")
    done = export_gguf(stored, tmp_path / "x.gguf")
    assert done.deviation == 0.0
    assert ("Q4_0" in done.form) == (settings["bits"] == 4)
    again = read(done.path)
    assert torch.equal(logits(again.model), logits(stored.model))
    theirs = {tensor.name: tensor for tensor in gguf.GGUFReader(done.path).tensors}
    whole = merge(stored.model)
    assert done.parameters == numbers_of(whole) == sum(parameter.numel() for parameter in whole.parameters())
    ours = to_theirs(weights_of(whole), ARCHITECTURES[family].rules(whole.spec))
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(
            torch.from_numpy(gguf.dequantize(theirs[name].data, theirs[name].tensor_type).copy()), tensor
        )
    if family == "llama":
        assert continued_alike(done.path, load(tmp_path / "small", say=lambda line: None)) >= 2


def test_scales_of_another_width_and_groups_that_are_no_blocks(tmp_path: Path) -> None:
    """A scale that is no float16 is rounded, which is told; what no block holds is written out."""
    saved(tmp_path / "model", "llama", **FOR_ALL)
    quantise(tmp_path / "model", tmp_path / "small", bits=4, group=16)
    stored = read(tmp_path / "small")
    done = export_gguf(stored, tmp_path / "a.gguf", "f32")
    assert "Q4_0" not in done.form
    assert (logits(read(done.path).model) - logits(stored.model)).abs().max() <= 1e-4
    quantise(tmp_path / "model", tmp_path / "other", bits=4)
    stored = read(tmp_path / "other")
    with torch.no_grad():
        stored.model.stack.blocks[0].attention.branch.q.weight_scale.mul_(1 + 2**-12)
    done = export_gguf(stored, tmp_path / "b.gguf")
    assert 0 < done.deviation <= 2**-11 * matrix_of(stored.model.stack.blocks[0].attention.branch.q).abs().max()


SENTENCES = (
    "the cat sat on the mat, the dog's log; äöü 日本 🙂\n\n  x=12345 67 (a) 'LL I'll  \t end...",
    "Don't  1234567   stop\r\n\r\n!!! naïve\n",
    "hello World helloWorld HTTPServer (foo|bar) ।   leading and trailing   ",
    "<|endoftext|> is thirteen characters; path/to/file //x ½ ² ٣٤ नमस्ते",
    "a+b=c <tag> `code` $5 ~x ^y | z … “quoted” — dash, 、。",
)
UNLIKE = {
    "superbpe": range(5),  # it cuts inside numbers only
    "bailingmoe": (3,),  # llama.cpp takes possessive quantifiers for greedy ones
    "gpt-4o": (3,),  # llama.cpp leaves out the marks that belong to letters
    "tekken": (3,),
    "kimi-k2": (3,),
    "tiny_aya": (1,),  # llama.cpp cuts two blanks before a number apart, which the library leaves together
}
"""Of a rule the sentences in which llama.cpp is not followed; the library `tokenizers` is."""


def tokenizer_of(rule: str) -> Tokenizer:
    """Train a byte-level BPE whose words are cut by a rule."""
    engine = trained(RULES[rule].cuts, {"ignore_merges": RULES[rule].whole}, 500)
    return Tokenizer(engine.to_str())


@pytest.mark.parametrize("rule", sorted({id(rule): name for name, rule in reversed(RULES.items())}.values()))
def test_llama_cpp_cuts_texts_by_the_rule_that_a_file_names(rule: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(rule)
    stored = read(saved(tmp_path / "model", "llama", tokenizer, vocab_size=tokenizer.size))
    path = export_gguf(stored, tmp_path / "x.gguf", "f32").path
    assert GgufFile(path).facts["tokenizer.ggml.pre"] in RULES
    file = rewritten(
        path, tmp_path / "y.gguf", "F32", {"tokenizer.ggml.pre": rule, "tokenizer.ggml.add_bos_token": None}
    )
    ours, reader = read(file).tokenizer, LlamaCpp(file, "", 1, 64, 1, exact=True)
    assert ours is not None
    for number, text in enumerate(SENTENCES):
        theirs = reader.ask("/tokenize", content=text, parse_special=False)["tokens"]
        if number not in UNLIKE.get(rule, ()):
            assert ours.encode(text) == theirs, text
        assert ours.decode(ours.encode(text)) == text
    first = reader.ask("/tokenize", content="cat", add_special=True)["tokens"][0]
    assert (ours.frame("cat").ids[0] == first) == True  # noqa: E712


# As in files of Gemma, of Phi and Qwen, of Llama 3, of gpt-oss.
ENDINGS = (
    ("<end_of_turn>", "<eos>", "<bos>", "<start_of_turn>"),
    ("<|end|>", "<|im_end|>", "<|user|>", "<|im_start|>", "<|endofprompt|>"),
    ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|start_header_id|>"),
    ("<|return|>", "<|call|>", "<|end|>", "<|start|>", "<|message|>"),
    ("<|calls|>", "<|flush|>", "<|end|>", "[EOT]", "[EOS]", "<EOT>", "<turn|>"),
)


@pytest.mark.parametrize("texts", ENDINGS, ids=str)
def test_llama_cpp_ends_at_the_same_tokens(texts: tuple[str, ...], plain: dict[str, Path], tmp_path: Path) -> None:
    facts = GgufFile(plain["llama"]).facts
    tokens, kinds, gone = list(facts["tokenizer.ggml.tokens"]), list(facts["tokenizer.ggml.token_type"]), set[str]()
    for id, text in enumerate(texts, 200):
        gone.add(tokens[id])
        tokens[id], kinds[id] = text, 3
    merges = [m for m in facts["tokenizer.ggml.merges"] if not {*m.split(" "), m.replace(" ", "")} & gone]
    changed = {"tokens": tokens, "token_type": kinds, "merges": merges, "eos_token_id": 199}
    path = tmp_path / "x.gguf"
    rewritten(plain["llama"], path, "F32", {f"tokenizer.ggml.{key}": value for key, value in changed.items()})
    reader, ends = LlamaCpp(path, "", 1, 64, 1, exact=True), read(path).generation["eos_token_id"]
    assert ends[0] == 199
    for id in range(199, 200 + len(texts)):
        answer = reader.ask("/completion", prompt="the", n_predict=2, temperature=0, logit_bias=[[id, 1000]])
        assert (answer["stop_type"] == "eos") == (id in ends), tokens[id]


def test_tokens_that_are_never_written_are_those_of_llama_cpp(plain: dict[str, Path], tmp_path: Path) -> None:
    """And the ends that Ollama lists."""
    first = [load(plain["llama"], say=lambda line: None).generate("the", max_new_tokens=1)]
    never = TOKENIZER.encode(first[0])[-1:]
    changed = {"tokenizer.ggml.suppress_tokens": never, "tokenizer.ggml.eos_token_ids": [5, 9]}
    path = rewritten(plain["llama"], tmp_path / "x.gguf", "F32", changed)
    generation = read(path).generation
    assert generation["suppress_tokens"] == never
    assert {5, 9} < set(generation["eos_token_id"])
    reader, ours = LlamaCpp(path, "", 1, 64, 1, exact=True), load(path, say=lambda line: None)
    written = reader.ask("/completion", prompt="the", n_predict=8, temperature=0, return_tokens=True)["tokens"]
    assert not set(never) & set(written)
    assert ours.generations(["the"], max_new_tokens=8)[0].ids == written


def test_the_first_rule_of_deepseek_cuts_ascii_from_other_letters() -> None:
    """Its punctuation goes from the colon to the tilde, letters among it, and cuts what its letters kept together."""
    cuts = [pre_tokenizers.Split(tokenizers.Regex(cut), "isolated") for cut in RULES["deepseek-llm"].cuts]
    words = [word for word, _ in pre_tokenizers.Sequence(cuts).pre_tokenize_str("naïve Über, 12 日本 Ωx=y\n end  ")]
    assert words == [
        "na",
        "ï",
        "ve",
        " Ü",
        "ber",
        ",",
        " ",
        "1",
        "2",
        " ",
        "日本",
        " Ω",
        "x",
        "=",
        "y",
        "\n",
        " end",
        "  ",
    ]


def test_what_a_file_asks_for_and_is_not_built_is_named(plain: dict[str, Path], tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"llama.expert_group_count": 8, "llama.expert_used_count": 2},
            "llama.expert_group_count = 8, llama.expert_used_count = 2",
        ),
        ({"llama.expert_count": 8, "llama.expert_used_count": 2}, "describes 3,493,632 parameters"),
        ({"llama.rope.dimension_count": 32}, "rope.dimension_count = 32"),
        ({"llama.attention.value_length": 32}, "attention.value_length = 32"),
        ({"llama.logit_scale": 0.5}, "llama.logit_scale = 0.5"),
        ({"llama.attention.head_count": [4, 4]}, "attention.head_count = "),
        ({"llama.attention.causal": False}, "llama.attention.causal = False"),
        ({"llama.rope.scaling.attn_factor": 1.5}, "llama.rope.scaling.attn_factor = 1.5"),
        ({"llama.rope.scaling.type": "longrope", "llama.rope.scaling.factor": 2.0}, "scaling.factor = 2.0"),
        ({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.yarn_ext_factor": 0.5}, "yarn_ext_factor = 0.5"),
        ({"llama.block_count": None}, "does not say llama.block_count"),
        ({"llama.attention.layer_norm_rms_epsilon": None}, "does not say llama.attention.layer_norm_rms_epsilon"),
        ({"tokenizer.ggml.suppress_tokens": 7}, "tokenizer.ggml.suppress_tokens"),
        ({"general.architecture": "a-new-one"}, "'a-new-one'"),
        ({"tokenizer.ggml.pre": "a-new-rule"}, "'a-new-rule'"),
        ({"tokenizer.ggml.model": "rwkv"}, "'rwkv'"),
        ({"tokenizer.ggml.model": [1, 2]}, "[1, 2]"),
        ({"tokenizer.ggml.pre": ["a"]}, "['a']"),
        ({"tokenizer.ggml.token_type": [1, 2]}, "2 kinds"),
        ({"tokenizer.ggml.add_bos_token": "yes"}, "add_bos_token"),
        ({"tokenizer.ggml.merges": ["zzz qqq"]}, "'zzz qqq'|zzz qqq"),
    ]
    for changed, words in cases:
        architecture = changed.get("general.architecture")
        path = rewritten(plain["llama"], tmp_path / "x.gguf", "F32", changed)
        if architecture:
            content = path.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama\x11", b"\x05\0\0\0\0\0\0\0lxxma\x11", 1)
            path.write_bytes(content)
        with pytest.raises(ModelFileError) as refused:
            read(path)
        assert any(word in refused.value.message for word in words.split("|")) or architecture, refused.value
        assert str(path) in refused.value.message
        assert refused.value.hint


def test_tokens_that_a_file_never_lets_be_written_are_told(plain: dict[str, Path], tmp_path: Path) -> None:
    path = rewritten(plain["llama"], tmp_path / "x.gguf", "F32", {"tokenizer.ggml.suppress_tokens": [3, 5, -1, 10**6]})
    assert read(path).generation["suppress_tokens"] == [3, 5]


LINEAR = {"rope_type": "linear", "factor": 2.0, "original_max_position_embeddings": 48, "llama_4_scaling_beta": 0.0}
DEEP = {
    "num_hidden_layers": 64, "intermediate_size": 32, "sliding_window": 4, "layer_types": None,
    "sliding_window_pattern": 4,
}  # fmt: skip
LONG = {"max_position_embeddings": 96, "original_max_position_embeddings": 16, "rope_scaling": LONGROPE}
SAID_OTHERWISE = [
    ("llama", {"rope_theta": 500.0, "rope_scaling": YARN}, {"llama.rope.scaling.attn_factor": 1.5}, False),
    ("llama", {"rope_theta": 500.0, "rope_scaling": YARN}, {"llama.rope.scaling.attn_factor": 1.0}, True),
    ("phi3", LONG, {"phi3.rope.scaling.attn_factor": 1.0}, False),
    ("phi3", LONG, {"phi3.rope.scaling.type": "longrope"}, True),
    ("phi3", {}, {"phi3.attention.sliding_window": 0}, True),
    ("llama", ALIKE, {"llama.rope.scaling.factor": 2.0}, False),
    ("llama", ALIKE, {"llama.rope.scale_linear": 2.0}, False),
    ("llama", ALIKE, {"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 2.0}, True),
    ("llama", ALIKE, {"llama.rope.scaling.type": "linear", "llama.attention.causal": True}, True),
    ("llama", ALIKE, {"llama.rope.scaling.original_context_length": 16, "llama.rope.scaling.attn_factor": 1.0}, True),
    ("llama", ALIKE, {"llama.attention.head_count": [4, 4], "llama.feed_forward_length": [64, 64]}, True),
    ("llama", ALIKE, {"llama.attention.layer_norm_epsilon": 0.5, "llama.tensor_data_layout": "Meta AI"}, True),
    ("nemotron", {}, {"nemotron.attention.layer_norm_rms_epsilon": 0.5}, True),
    ("gemma2", {"sliding_window": 3}, {"gemma2.attention.sliding_window_pattern": [False, True]}, False),
    ("gemma3_text", {}, {"gemma3.attention.sliding_window_pattern": 3}, False),
    ("gemma3_text", {}, {"gemma3.attention.sliding_window_pattern": [True] * 5 + [False]}, True),
    ("cohere2", {}, {"cohere2.attention.sliding_window_pattern": 2}, False),
    ("olmo3", {}, {"olmo2.attention.sliding_window_pattern": [True, False, True, False]}, False),
    ("olmo3", {}, {"olmo2.attention.sliding_window_pattern": [True, True, True, False]}, True),
    ("gpt_oss", {"sliding_window": 3}, {"gpt-oss.attention.sliding_window_pattern": [False, True]}, False),
    ("exaone4", {}, {"exaone4.attention.sliding_window_pattern": [True, False, True]}, True),  # a smaller one has none
    ("exaone4", DEEP, {"exaone4.attention.sliding_window_pattern": [True, False] * 32}, False),
    ("apertus", {}, {"xielu.beta": 0.5, "xielu.eps": -0.25}, False),
    ("ministral3", {}, {"mistral3.rope.scaling.yarn_beta_slow": None}, False),
    ("ministral3", {"rope_parameters": LINEAR}, {"mistral3.attention.temperature_scale": None}, True),
    (
        "qwen3_next",
        {},
        {"qwen3next.full_attention_interval": None, "qwen3next.attention.recurrent_layers": [True, False]},
        True,
    ),
]


@pytest.mark.parametrize(("family", "config", "changed", "same"), SAID_OTHERWISE, ids=str)
def test_a_fact_may_be_left_out_or_said_in_another_way(
    family: str, config: dict[str, Any], changed: dict[str, Any], same: bool, tmp_path: Path
) -> None:
    path = written(tmp_path, "f32", family, **config)
    other = rewritten(path, tmp_path / "other.gguf", "F32", changed)
    assert torch.equal(logits(read(other).model), logits(read(path).model)) == same
    lm, reader = load(other, say=lambda line: None), LlamaCpp(other, "", 1, 64, 1, exact=True)
    assert distance(lm, reader, "the cat sat") < BOUNDS[family]


OTHER_FILES: list[tuple[str, dict[str, Any], str, str]] = [
    ("llama", {"general.type": "adapter", "adapter.type": "lora"}, "an adapter", "the folders that peft writes"),
    ("llama", {"adapter.type": "lora"}, "an adapter", "the folders that peft writes"),
    ("clip", {"general.type": "mmproj"}, "reads images or sounds", "the language model"),
    ("clip", {}, "reads images or sounds", "the language model"),
    ("", {"general.type": "imatrix", "imatrix.chunk_count": 3}, "an importance matrix", "the file of the model"),
    ("controlvector", {}, "a control vector", "the file of the model"),
    ("phimoe", {}, "a Phi-3.5-MoE", "the Hugging Face folder"),
    ("t5encoder", {}, "the encoder of a T5 alone", "the whole model"),
]


@pytest.mark.parametrize(("architecture", "facts", "what", "instead"), OTHER_FILES, ids=str)
def test_a_file_that_is_no_model_is_told_by_what_it_is(
    architecture: str, facts: dict[str, Any], what: str, instead: str, tmp_path: Path
) -> None:
    file = of_one_tensor(tmp_path / "x.gguf", architecture, facts)
    with pytest.raises(ModelFileError) as refused:
        read(file)
    assert f"{file} is " in refused.value.message
    assert what in refused.value.message
    assert instead in refused.value.hint


def of_one_tensor(path: Path, architecture: str, facts: Mapping[str, Any]) -> Path:
    """Write a file of an architecture, or of none, with these facts and one tensor."""
    writer = gguf.GGUFWriter(path, architecture or "llama")
    if not architecture:
        writer.kv_data[0].pop("general.architecture")
    for key, value in facts.items():
        writer.add_key_value(key, value, _type(value))
    writer.add_tensor("blk.0.attn_q.weight.lora_a", torch.ones(2, 4).numpy())
    finish(writer)
    return path


def test_a_vocabulary_alone_is_told(plain: dict[str, Path], tmp_path: Path) -> None:
    """And tensors that a model has no place for are named with the file, whose facts are no config.json."""
    empty = rewritten(plain["llama"], tmp_path / "empty.gguf", "F32", others=lambda tensors: {})
    with pytest.raises(ModelFileError, match=r"empty\.gguf is a vocabulary without a single weight"):
        read(empty)
    scaled = {"others": lambda tensors: {**tensors, "blk.0.attn_q.scale": torch.ones(1)}}
    with pytest.raises(ModelFileError, match=r"scaled\.gguf: .* 1 unexpected: blk\.0\.attn_q\.scale") as refused:
        read(rewritten(plain["llama"], tmp_path / "scaled.gguf", "F32", **scaled))
    assert refused.value.hint == "take the Hugging Face folder of the same model"


@pytest.mark.parametrize("temperature", [None, 1.0, 1.5], ids=str)
def test_two_sets_of_factors_are_those_of_the_makers_on_both_sides_of_the_trained_length(
    temperature: float | None, tmp_path: Path
) -> None:
    """As in the files of Phi-3's long models; of a file whose sets are exchanged the numbers are others."""
    scaling = LONGROPE if temperature is None else {**LONGROPE, "attention_factor": temperature}
    path = written(tmp_path, "f32", "phi3", **{**LONG, "rope_scaling": scaling})
    import_model(path, tmp_path / "imported")
    config = json.loads((tmp_path / "imported" / "config.json").read_text())["rope_scaling"]
    assert ("attention_factor" in config) == (temperature is not None)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "imported", attn_implementation="eager")
    turned = rewritten(path, tmp_path / "turned.gguf", "F32", others=exchanged)
    for length in (16, 17):
        ids = torch.randint(0, 30, (2, length), generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            expected = theirs.double()(ids).logits
            ours, other = (read(place).model.double().logits(ids) for place in (path, turned))
        assert (ours - expected).abs().max() < 1e-5  # the angles of the reference are in float32
        assert (other - expected).abs().max() > 1e-2


def exchanged(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give the long factors the name of the short ones, and these theirs."""
    names = {"rope_factors_long.weight": "rope_factors_short.weight"}
    names |= {short: long for long, short in names.items()}
    return {names.get(name, name): tensor for name, tensor in tensors.items()}


def test_one_set_of_factors_alone_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "f32", "phi3", **LONG)
    others = {"others": lambda tensors: {name: t for name, t in tensors.items() if "factors_long" not in name}}
    with pytest.raises(ModelFileError, match=r"x\.gguf: of the two .* it lacks rope_factors_long\.weight"):
        read(rewritten(path, tmp_path / "x.gguf", "F32", **others))


def test_layers_that_predict_further_tokens_are_left_out(tmp_path: Path) -> None:
    """As the files of GLM-4.5 hold one; llama.cpp reads past it too."""
    path = written(tmp_path, "f32", "glm4_moe")
    layers = GgufFile(path).facts["glm4moe.block_count"]
    further = {"glm4moe.nextn_predict_layers": 1}
    longer = rewritten(path, tmp_path / "longer.gguf", "F32", further)
    ours, whole = load(longer, say=lambda line: None), read(path)
    assert len(ours.model.spec.stack.blocks) == layers - 1
    after: list[torch.Tensor] = []
    whole.model.stack.blocks[-1].register_forward_pre_hook(lambda module, given: after.append(given[0]))
    logits(whole.model)
    with torch.no_grad():
        expected = whole.model.head.vocabulary(whole.model.stack.final(after[0]))
    assert torch.equal(logits(ours.model), expected)


OTHERWISE = [
    ("glm4_moe", {"glm4moe.expert_gating_func": 1}, "expert_gating_func = 1"),
    ("gpt_oss", {"gpt-oss.expert_gating_func": 2}, "expert_gating_func = 2"),
    ("ernie4_5_moe", {"ernie4_5-moe.expert_gating_func": 2}, "expert_gating_func = 2"),
    ("deepseek_v2", {"deepseek2.expert_weights_norm": True}, "expert_weights_norm"),
    ("deepseek_v3", {"deepseek2.expert_gating_func": 7}, "expert_gating_func = 7"),
]


@pytest.mark.parametrize(("family", "changed", "named"), OTHERWISE, ids=str)
def test_experts_chosen_or_weighed_otherwise_are_refused(
    family: str, changed: dict[str, Any], named: str, tmp_path: Path
) -> None:
    plain = written(tmp_path, "f32", family)
    with pytest.raises(ModelFileError, match=named) as refused:
        read(rewritten(plain, tmp_path / "x.gguf", "F32", changed))
    assert str(tmp_path) in refused.value.message
    unsaid = dict.fromkeys(changed)  # as older files are
    if family != "deepseek_v3":  # of which an older file has to say it
        assert read(rewritten(plain, tmp_path / "y.gguf", "F32", unsaid)).family == family


FACTS_OF = (
    "llama", "apertus", "gpt2", "gemma2", "granitemoehybrid", "jamba", "mamba2", "nemotron_h",
    "deepseek_v3", "ernie4_5_moe", "glm4_moe", "gpt_oss", "qwen3_next",
)  # fmt: skip


@pytest.mark.parametrize("family", FACTS_OF)
def test_a_fact_of_any_value_ends_in_nothing_else_than_a_refusal(family: str, tmp_path: Path) -> None:
    plain = export_gguf(read(saved(tmp_path / "model", family)), tmp_path / "x.gguf", "f32").path
    hints = []
    for key in GgufFile(plain).facts.keys() - {"general.architecture"}:
        for value in ("x", [1, 2], 2**31):
            try:
                read(rewritten(plain, tmp_path / "y.gguf", "F32", {key: value}))
            except ModelFileError as error:
                hints.append(error.hint)
    assert len(hints) > 10
    assert all(hints)


def latent_in_one(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Put DeepSeek's keys and values together, head by head, as files before April 2025 have them."""
    made = dict(tensors)
    for name in [name for name in tensors if name.endswith("attn_k_b.weight")]:
        keys, values = made.pop(name), made.pop(name.replace("k_b", "v_b"))
        made[name.replace("k_b", "kv_b")] = torch.cat([keys.mT, values], 1).flatten(0, 1).contiguous()
    return made


def one_by_one(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give each expert of Mixtral tensors of its own, as files before April 2024 do."""
    made = {name: tensor for name, tensor in tensors.items() if "_exps" not in name}
    for name in tensors.keys() - made.keys():
        for number, expert in enumerate(tensors[name]):
            made[name.replace("_exps", f".{number}")] = expert
    return made


def gate_by_key(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Put the gate of Qwen3-Next's delta rule with its queries, keys and values, key by key, as the first files do."""
    made = dict(tensors)
    for name in [name for name in tensors if name.endswith("attn_gate.weight")]:
        gate, together = made.pop(name), made.pop(name.replace("gate", "qkv"))
        parts = (*together.split([32, 32, 64]), gate)  # two keys, of which each has two values
        in_one = torch.cat([part.unflatten(0, (2, -1)) for part in parts], 1).flatten(0, 1)
        made[name.replace("attn_gate", "ssm_in")] = in_one.contiguous()
    return made


def in_pairs(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Put gate and up of all experts in one tensor, as newer files of some architectures do."""
    made = {name: tensor for name, tensor in tensors.items() if not re.search(r"ffn_(gate|up)_exps", name)}
    for name in tensors:
        if "ffn_gate_exps" in name:
            up = tensors[name.replace("gate", "up")]
            made[name.replace("gate_exps", "gate_up_exps")] = torch.cat([tensors[name], up], 1)
    return made


PAIRED = (*MIXTURES, *EXPERTS, "granitemoehybrid", "jamba", "qwen3_next")
PAIRED_THERE = ("deepseek_v2", "deepseek_v3", "qwen3_next")
"""Whose pairs llama.cpp reads."""


@pytest.mark.parametrize("family", PAIRED)
def test_gate_and_up_of_all_experts_may_be_one_tensor(family: str, tmp_path: Path) -> None:
    plain = written(tmp_path, "f32", family)
    path = rewritten(plain, tmp_path / "pairs.gguf", "F32", others=in_pairs)
    assert set(GgufFile(path)) != set(GgufFile(plain))
    assert torch.equal(logits(read(path).model), logits(read(plain).model))
    if family in PAIRED_THERE:
        lm, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 64, 1, exact=True)
        assert distance(lm, reader, "the cat sat") < BOUNDS[family]
    stored = read(rewritten(path, tmp_path / "blocks.gguf", "Q8_0"))
    kinds = [p.dtype for name, p in stored.model.named_parameters() if ".experts." in name and name.endswith("weight")]
    assert set(kinds) == {torch.uint8}
    wide = logits(stored.model.double())
    assert (wide - logits(merge(stored.model))).abs().max() <= 1e-12 * wide.abs().max()


OLDER = {
    "deepseek_v2": latent_in_one,
    "deepseek_v3": latent_in_one,
    "mixtral": one_by_one,
    "qwen3_next": gate_by_key,
}


@pytest.mark.parametrize("family", OLDER)
def test_files_from_before_a_change_of_names_are_the_same_model(family: str, tmp_path: Path) -> None:
    plain = written(tmp_path, "f32", family)
    architecture, facts = ARCHITECTURES[family].name, GgufFile(plain).facts
    changed: dict[str, Any] = {}
    for part in ("key", "value") if architecture == "deepseek2" else ():
        key = f"{architecture}.attention.{part}_length"
        heads = {f"{architecture}.attention.head_count_kv": facts[f"{architecture}.attention.head_count"]}
        changed |= {f"{key}_mla": None, key: facts[f"{key}_mla"], **heads}
    path = rewritten(plain, tmp_path / "older.gguf", "F32", changed, others=OLDER[family])
    assert set(GgufFile(path)) != set(GgufFile(plain))
    assert torch.equal(logits(read(path).model), logits(read(plain).model))
    if family != "mixtral":  # which llama.cpp no longer reads
        lm, reader = load(path, say=lambda line: None), LlamaCpp(path, "", 1, 64, 1, exact=True)
        assert distance(lm, reader, "the cat sat") < BOUNDS[family]
    blocks = rewritten(plain, tmp_path / "blocks.gguf", "Q8_0", changed, others=OLDER[family])
    assert torch.uint8 in {parameter.dtype for parameter in read(blocks).model.parameters()}
