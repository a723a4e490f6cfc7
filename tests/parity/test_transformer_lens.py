"""TransformerLens on the same weights: every tensor under its name, the parts of the stream, the attribution of logits.

Nothing is downloaded: a random tiny gpt2 is written into a folder, which both read.
"""

import pytest
import torch

from orrery.exchange.reading.read import read
from orrery.inspection.attribution.names import ROTATED, SAME, TURNED, legacy_names
from orrery.inspection.trace import trace
from tests.parity import oracle
from tests.parity.bridge import EXACT, VOCABULARY, broken, looked_at, transformer_lens, written
from tests.parity.helper import error

IDS = torch.randint(0, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(0))
# It divides by scales that it rounded to float32 where it folds them into weights.
FOLDED = 1e-6


@pytest.fixture(scope="module")
def lens():
    with transformer_lens() as library:
        yield library


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def theirs(lens, folder):
    return looked_at(lens, folder, IDS)


@pytest.fixture(scope="module")
def ours(folder):
    return trace(read(folder).model.double().eval(), IDS)


@pytest.fixture(scope="module")
def rotary(lens, tmp_path_factory):
    """Return both libraries' looks into a llama, theirs with float64 in the place of its casts to float32."""
    from transformer_lens.model_bridge.generalized_components import position_embeddings_attention

    place = tmp_path_factory.mktemp("llama")
    with oracle.widened(oracle.modelling("llama"), position_embeddings_attention):
        theirs = looked_at(lens, written(place, "llama"), IDS)
    return trace(read(place).model.double().eval(), IDS), theirs


def test_the_logits_are_equal(ours, theirs):
    assert error(ours.logits, theirs.logits) < EXACT


def assert_same_tensors(ours, theirs, names):
    for name in names:
        a, b = ours[name], theirs.cache[name]
        assert a.shape == b.shape, name
        hidden = b.isneginf()
        assert torch.equal(a.isneginf(), hidden), name
        assert error(a.masked_fill(hidden, 0), b.masked_fill(hidden, 0)) < EXACT, name


@pytest.mark.parametrize("turned", [TURNED, ROTATED], ids=["gpt2", "llama"])
def test_every_name_of_the_tables_is_its_tensor(request, turned):
    ours, theirs = (
        request.getfixturevalue("rotary") if turned is ROTATED else map(request.getfixturevalue, ("ours", "theirs"))
    )
    names = legacy_names(ours)
    tables = len([name for name in SAME | turned if "N" in name]), len([name for name in SAME if "N" not in name])
    assert len(names) == 2 * tables[0] + tables[1]
    assert_same_tensors(ours, theirs, names)
    assert error(ours.logits, theirs.logits) < EXACT


COMPUTED = [
    *(f"blocks.{n}.mlp.hook_pre" for n in range(2)),
    *(f"blocks.{m}.ln{n}.hook_{what}" for m in range(2) for n in (1, 2) for what in ("scale", "normalized")),
    "ln_final.hook_scale",
    "ln_final.hook_normalized",
]


def test_what_is_computed_from_kept_values_is_its_tensor(ours, theirs, rotary):
    assert_same_tensors(ours, theirs, [*COMPUTED, "hook_pos_embed"])
    assert_same_tensors(*rotary, [*COMPUTED, *(f"blocks.{n}.mlp.hook_pre_linear" for n in range(2))])


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


@torch.no_grad()
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
        lens, folder, IDS, fold_ln=True, center_writing_weights=False, center_unembed=False, fold_value_biases=False
    )
    assert error(seen.logits, ours.logits) < FOLDED
    attribution = ours.logit_attribution(7, against=against)
    values = dict(zip(attribution.names, attribution.value_NBP[:, :, 0], strict=True))
    biases = [values.pop(f"blocks.{n}.attention.bias") for n in range(2)]
    values.pop("final.bias")  # folded into the biases of the head there
    expected = attributed(seen, 7, against)
    assert error(sum(biases), expected.pop("bias")) < FOLDED
    assert set(values) == set(expected)
    for name, value_B in values.items():
        assert error(value_B, expected[name]) < FOLDED, name
        assert value_B.abs().max() > 1e-4


def test_without_folding_they_are_equal_where_the_gain_is_one(lens, tmp_path_factory):
    """As it comes, the library leaves the gain of the final norm out; with a gain of one nothing is left out."""
    place = written(tmp_path_factory.mktemp("plain"), **{"transformer.ln_f.weight": 1.0})
    attribution = trace(read(place).model.double().eval(), IDS).logit_attribution(7, against=5)
    values = dict(zip(attribution.names, attribution.value_NBP[:, :, 0], strict=True))
    expected = attributed(looked_at(lens, place, IDS), 7, 5)
    for name in set(values) & set(expected):
        assert error(values[name], expected[name]) < EXACT, name
    assert len(set(values) & set(expected)) == 2 + 2 * 4 + 2


def test_the_stream_accumulates_alike(ours, theirs):
    streams_NBLD, labels = theirs.cache.accumulated_resid(incl_mid=True, return_labels=True)
    places = {"pre": "resid_pre", "mid": "attention.resid"}
    for label, stream_BLD in zip(labels, streams_NBLD, strict=True):
        block, place = label.split("_")
        key = "blocks.1.resid_post" if block == "final" else f"blocks.{block}.{places[place]}"
        assert error(ours[key], stream_BLD) < EXACT, label


def test_the_stream_is_decomposed_alike(ours, theirs):
    parts_NBLD, labels = theirs.cache.decompose_resid(return_labels=True)
    parts = ours.parts(None)
    known = {"embed": ["embedded.token"], "pos_embed": ["embedded.position"]}
    for n in range(2):
        known[f"{n}_attn_out"] = [name for name in parts.names if name.startswith(f"blocks.{n}.attention.")]
        known[f"{n}_mlp_out"] = [f"blocks.{n}.feed_forward.added"]
    assert sorted(labels) == sorted(known)
    assert sorted(name for names in known.values() for name in names) == sorted(parts.names)
    for label, part_BLD in zip(labels, parts_NBLD, strict=True):
        assert error(sum(parts[name] for name in known[label]), part_BLD) < EXACT, label


@torch.no_grad()
def lens_of(theirs):
    """Return the library's logits after each block: its norm and its head on the stream that it gathered."""
    streams_NBLD = theirs.cache.accumulated_resid(apply_ln=True)
    return torch.stack([theirs.model.unembed(stream_BLD) for stream_BLD in streams_NBLD])


def assert_one_lens(lens, logits_NBLV):
    log_NBLV = logits_NBLV.log_softmax(-1)
    best = log_NBLV.topk(5, dim=-1)
    assert torch.equal(lens.id_NBLK, best.indices)
    assert error(lens.log_probability_NBLK, best.values) < EXACT
    own_NBL1 = log_NBLV[:, :, :-1].gather(-1, IDS[None, :, 1:, None].expand(len(log_NBLV), -1, -1, 1))
    assert error(lens.target_log_probability_NBL[:, :, :-1], own_NBL1[..., 0]) < EXACT
    assert torch.equal(lens.target_rank_NBL[:, :, :-1], (log_NBLV[:, :, :-1] > own_NBL1).sum(-1))
    assert error(lens.entropy_NBL, torch.distributions.Categorical(logits=log_NBLV).entropy()) < EXACT


def test_the_lens_says_the_same_after_each_block(ours, theirs):
    logits_NBLV = lens_of(theirs)
    assert error(logits_NBLV[-1], theirs.logits) < EXACT
    assert_one_lens(ours.lens(k=5), logits_NBLV)
    own = theirs.cache.logit_lens(positions=None, return_type="log_probs")
    assert error(own.values, logits_NBLV.log_softmax(-1)) < 1e-5  # it answers in float32


BROKEN = {
    "embed.token.weight": "hook_embed",
    "stack.positions.learned.table.weight": "hook_pos_embed",
    "stack.blocks.0.attention.branch.q.weight": "blocks.0.attn.hook_q",
    "stack.blocks.1.attention.branch.out.weight": "blocks.1.hook_attn_out",
    "stack.blocks.1.feed_forward.branch.down.bias": "blocks.1.hook_mlp_out",
    "stack.final.weight": "ln_final.hook_out",
}
"""A parameter of ours, and the first tensor that shows that a number of it is another."""


@pytest.mark.parametrize("name", BROKEN)
def test_the_comparisons_see_a_broken_model(folder, theirs, name):
    row = int(IDS[0, 0]) if "token" in name else 0
    traced = trace(broken(read(folder).model.double().eval(), name, row), IDS)
    assert error(traced[BROKEN[name]], theirs.cache[BROKEN[name]]) > 1e-3
    with pytest.raises(AssertionError):
        assert_one_lens(traced.lens(k=5), lens_of(theirs))
    with pytest.raises(AssertionError):
        assert_same_tensors(traced, theirs, legacy_names(traced))
