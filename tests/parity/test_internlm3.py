"""InternLM3 against Llama with its biases: the published reference is code beside the weights, which is just that.

transformers reads it as Llama where the two groups of biases agree; its Seed-OSS, which has a setting for each bias,
stands in for all, see ``stand_ins``.
"""

import io
import json

import pytest
import sentencepiece
import torch
import transformers

from orrery.checkpoints.rules import to_ours
from orrery.families import load_family, rules_of
from orrery.language_model.load import load as read
from orrery.text import load_tokenizer
from tests.parity import oracle
from tests.parity.helper import assert_parity, error, load, pair, random_ids, shapes_of

TINY = {key: value for key, value in load_family("internlm3").TINY.items() if key != "vocab_size"}
DYNAMIC = {"rope_theta": 500.0, "rope_scaling": {"rope_type": "dynamic", "factor": 6.0}}
SIDES = [(qkv, rest) for qkv in (False, True) for rest in (False, True)]


@pytest.mark.parametrize(("qkv", "rest"), SIDES)
def test_float64_with_either_group_of_biases(qkv, rest):
    both = assert_parity("internlm3", 1e-9, **{**TINY, "qkv_bias": qkv, "bias": rest})
    held = {name.split(".")[-2] for name in oracle.file_of(both.theirs) if name.endswith(".bias")}
    groups = [("q_proj", "k_proj", "v_proj"), ("o_proj", "gate_proj", "up_proj", "down_proj")]
    assert held == {name for asked, group in zip((qkv, rest), groups, strict=True) if asked for name in group}


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("named", ["qkv_bias, bias", "attention_bias, mlp_bias"])
@torch.no_grad()
def test_transformers_own_reading_as_llama_is_the_same(tmp_path, biased, named):
    """A second witness, where the groups of biases agree, in a folder with the names of either side."""
    config = {
        **TINY,
        "vocab_size": 97,
        **DYNAMIC,
        "max_position_embeddings": 8,
        **dict.fromkeys(named.split(", "), biased),
    }
    config = {key: value for key, value in config.items() if key in named.split(", ") or not key.endswith("bias")}
    with oracle.widened(oracle.modelling("llama")):
        settings = transformers.InternLM3Config(**config)
        theirs = transformers.AutoModelForCausalLM.from_config(settings, attn_implementation="eager").double().eval()
        oracle.randomise(theirs, 0)
        expected = theirs(random_ids(2, 14)).logits
    theirs.save_pretrained(tmp_path / "theirs")
    ours = read(tmp_path / "theirs", say=lambda line: None)
    assert type(theirs) is transformers.LlamaForCausalLM
    assert error(ours.model.logits(random_ids(2, 14)), expected) < 1e-9
    ours.save(tmp_path / "ours")
    assert (tmp_path / "ours" / "model.safetensors").read_bytes() == (
        tmp_path / "theirs" / "model.safetensors"
    ).read_bytes()


@torch.no_grad()
def test_positions_stretch_with_what_is_read_beyond_the_trained_length():
    """A pass over n tokens turns at the rates of n; cached decoding equals it at the same capacity."""
    both, ids = pair("internlm3", **{**TINY, **DYNAMIC, "max_position_embeddings": 8}), random_ids(2, 14)
    expected = both.reference(ids).logits
    assert error(both.ours.logits(ids), expected) < 1e-9
    logits, session = both.ours.start(ids[:, :4], capacity=14)
    stepped = both.ours.step(ids[:, 4:], session)
    assert error(torch.cat([logits[:, None], stepped], 1), expected[:, 3:]) < 1e-9
    plain = pair("internlm3", **{**TINY, **DYNAMIC, "rope_scaling": None, "max_position_embeddings": 8})
    assert error(plain.ours.logits(ids), expected) > 1e-3


@torch.no_grad()
def test_a_bias_in_the_wrong_place_is_found():
    both, ids = pair("internlm3", **{**TINY, "bias": True}), random_ids(2, 9)
    tensors = to_ours(
        oracle.file_of(both.theirs), rules_of(load_family("internlm3"), both.config), shapes_of(both.ours)
    )
    tensors["stack.blocks.1.feed_forward.branch.gate.bias"] = tensors["stack.blocks.1.feed_forward.branch.up.bias"]
    load(both.ours, tensors)
    assert error(both.ours.logits(ids), both.reference(ids).logits) > 1e-3


def test_a_tokenizer_folder_encodes_as_sentencepiece_with_the_start_token_in_front(tmp_path):
    made, lines = io.BytesIO(), [f"the naïve {number} == {number * 111} 東京" for number in range(120)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=made, vocab_size=356, model_type="bpe", hard_vocab_limit=False,
        byte_fallback=True, remove_extra_whitespaces=False, normalization_rule_name="identity", minloglevel=3,
    )  # fmt: skip
    (tmp_path / "tokenizer.model").write_bytes(made.getvalue())
    remote = {"AutoTokenizer": ["tokenization_internlm3.InternLM3Tokenizer", None]}
    said = {"tokenizer_class": "InternLM3Tokenizer", "auto_map": remote, "add_bos_token": True, "bos_token": "<s>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
    library, ours = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue()), load_tokenizer(tmp_path)
    for text in ("", " x", "the naïve 7", "東京\n\n  🙂", *lines[:9]):
        ids = library.encode(text)
        assert ours.encode(text, special="around") == [library.bos_id(), *ids]
        assert ours.decode(ids) == library.decode(ids)
