"""TransformerLens on the same weights: every tensor under its name, the parts of the stream, the attribution of logits.

Nothing is downloaded: a random tiny gpt2 is written into a folder, which both read.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as Engine
from tokenizers import models

from orrery.inspection.attribution.names import SAME, TURNED, legacy_names
from orrery.inspection.trace import trace
from orrery.reading.read import read
from tests.parity import oracle
from tests.parity.helper import error

VOCABULARY = 61
IDS = torch.randint(0, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(0))
CONFIG = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 48, "vocab_size": VOCABULARY}
# What it computes is transformers' own forward, whose kernels round otherwise than ours.
EXACT = 1e-12
# It divides by scales that it rounded to float32 where it folds them into weights.
FOLDED = 1e-6


@pytest.fixture(scope="module")
def lens() -> Iterator[Any]:
    """Give the library, and take back what importing it does to the validation of configurations everywhere."""
    from huggingface_hub import dataclasses

    validate = dataclasses._validate_simple_type
    library = pytest.importorskip("transformer_lens")
    yield library
    dataclasses._validate_simple_type = validate


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Any:
    """Write the model and a tokenizer, without which TransformerLens reads nothing."""
    from transformers import PreTrainedTokenizerFast

    place = tmp_path_factory.mktemp("gpt2")
    model = oracle.reference("gpt2", 0, torch.float64, **CONFIG)
    model.save_pretrained(place)
    words = {f"w{n}": n for n in range(VOCABULARY)}
    engine = Engine(models.WordLevel(words, unk_token="w0"))
    roles = dict.fromkeys(("unk_token", "pad_token", "bos_token", "eos_token"), "w0")
    PreTrainedTokenizerFast(tokenizer_object=engine, **roles).save_pretrained(place)
    return place


def looked_at(library, folder, **folding):
    """Return the library's cache of a run, its weights as they are unless something is to be folded."""
    bridge = library.TransformerBridge.boot_transformers(str(folder), device="cpu", dtype=torch.float64)
    bridge.enable_compatibility_mode(no_processing=not folding, **folding)
    with torch.no_grad():
        logits, cache = bridge.run_with_cache(IDS)
    return SimpleNamespace(logits=logits, cache=cache)


@pytest.fixture(scope="module")
def theirs(lens, folder):
    return looked_at(lens, folder)


@pytest.fixture(scope="module")
def ours(folder):
    return trace(read(folder).model.double().eval(), IDS)


def test_the_logits_are_equal(ours, theirs):
    assert error(ours.logits, theirs.logits) < EXACT


def test_every_name_of_the_tables_is_its_tensor(ours, theirs):
    names = legacy_names(ours)
    tables = len([name for name in SAME | TURNED if "N" in name]), len([name for name in SAME if "N" not in name])
    assert len(names) == 2 * tables[0] + tables[1]
    for name in names:
        a, b = ours[name], theirs.cache[name]
        assert a.shape == b.shape, name
        hidden = b.isneginf()
        assert torch.equal(a.isneginf(), hidden), name
        assert error(a.masked_fill(hidden, 0), b.masked_fill(hidden, 0)) < EXACT, name


@pytest.mark.parametrize(
    "name",
    [
        "hook_pos_embed",
        *(f"blocks.{n}.mlp.hook_pre" for n in range(2)),
        *(f"blocks.1.ln{n}.hook_{what}" for n in (1, 2) for what in ("scale", "normalized")),
        "ln_final.hook_scale",
        "ln_final.hook_normalized",
    ],
)
def test_what_is_computed_from_kept_values_is_its_tensor(ours, theirs, name):
    a, b = ours[name], theirs.cache[name]
    assert a.shape == b.shape
    assert error(a, b) < EXACT


def test_two_names_do_not_give_one_tensor(ours, theirs):
    """The comparison sees a table with two lines exchanged: no two tensors are equal by chance."""
    assert error(ours["blocks.0.attn.hook_q"], theirs.cache["blocks.0.attn.hook_k"]) > 0.1
    assert error(ours["blocks.0.hook_resid_mid"], theirs.cache["blocks.0.hook_resid_post"]) > 0.1


def test_heads_write_what_they_write_there(ours, theirs):
    with torch.no_grad():
        result_NBLD, labels = theirs.cache.stack_head_results(layer=2, return_labels=True)
    parts = ours.parts(None)
    for label, result_BLD in zip(labels, result_NBLD, strict=True):
        block, head = label.removeprefix("L").split("H")
        assert error(parts[f"blocks.{block}.attention.head.{head}"], result_BLD) < EXACT
        assert error(ours[f"blocks.{block}.attn.hook_result"][:, :, int(head)], result_BLD) < EXACT


def attributed(seen, token, against=None):
    """Return the library's attribution of a logit at the last position, under our names of the parts."""
    stack, labels = seen.cache.get_full_resid_decomposition(expand_neurons=False, return_labels=True, pos_slice=-1)
    value_NB = seen.cache.logit_attrs(stack, token, incorrect_tokens=against, pos_slice=-1)
    known = {"embed": "embedded.token", "pos_embed": "embedded.position", "bias": "bias"}
    named = {}
    for label, value_B in zip(labels, value_NB, strict=True):
        if label.endswith("_mlp_out"):
            name = f"blocks.{label[0]}.feed_forward.added"
        else:
            name = known.get(label) or "blocks.{}.attention.head.{}".format(*label.removeprefix("L").split("H"))
        named[name] = value_B
    return named


@pytest.mark.parametrize("against", [None, 5])
def test_logits_are_attributed_alike(lens, folder, ours, against):
    seen = looked_at(
        lens, folder, fold_ln=True, center_writing_weights=False, center_unembed=False, fold_value_biases=False
    )
    assert error(seen.logits, ours.logits) < FOLDED
    found = ours.logit_attribution(7, against=against)
    values = dict(zip(found.names, found.value_NBP[:, :, 0], strict=True))
    biases = [values.pop(f"blocks.{n}.attention.bias") for n in range(2)]
    values.pop("final.bias")  # folded into the biases of the head there
    expected = attributed(seen, 7, against)
    assert error(sum(biases), expected.pop("bias")) < FOLDED
    assert set(values) == set(expected)
    for name, value_B in values.items():
        assert error(value_B, expected[name]) < FOLDED, name
        assert value_B.abs().max() > 1e-4


def test_without_folding_they_are_equal_where_the_gain_is_one(lens, tmp_path_factory, folder):
    """As it comes, the library leaves the gain of the final norm out; with a gain of one nothing is left out."""
    place = tmp_path_factory.mktemp("plain")
    model = oracle.reference("gpt2", 0, torch.float64, **CONFIG)
    with torch.no_grad():
        model.transformer.ln_f.weight.fill_(1)
    model.save_pretrained(place)
    for file in folder.glob("*token*"):
        (place / file.name).write_bytes(file.read_bytes())
    found = trace(read(place).model.double().eval(), IDS).logit_attribution(7, against=5)
    values = dict(zip(found.names, found.value_NBP[:, :, 0], strict=True))
    expected = attributed(looked_at(lens, place), 7, 5)
    for name in set(values) & set(expected):
        assert error(values[name], expected[name]) < EXACT, name
    assert len(set(values) & set(expected)) == 2 + 2 * 4 + 2
