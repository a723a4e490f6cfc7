import json
import sys

import pytest
import torch
from tests.parity.oracle import REFERENCED

from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.cli.program import run
from orrery.errors import UsageError
from orrery.exchange.parity import reference
from orrery.exchange.parity.compare import ComparedTensor, _in_common, _step, compare, inputs, look
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.save import save_model
from orrery.families import load_family, model_type, names
from orrery.models.encoder import Encoder
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.batch_norm import BatchNorm
from orrery.nn.inputs import Images
from orrery.nn.spec import to_json
from tiny_models import CONFIGS, randomised, saved, smallest, tiny

NORM = "model.layers.1.input_layernorm.weight"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("model"), "gpt2")


def changed(folder, name, change):
    tensors = read_tensors(folder / "model.safetensors")
    change(tensors[name])
    write_tensors(folder / "model.safetensors", tensors)
    return folder


def called(capsys, *words):
    code = run(["parity", *map(str, words)])
    return code, capsys.readouterr()


def test_a_model_equals_itself(model, capsys):
    code, printed = called(capsys, model, "--against", model)
    assert code == 0
    lines = printed.out.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == [
        "embedded", "blocks.0.resid_post", "blocks.1.resid_post", "final", "logits",
    ]  # fmt: skip
    assert lines[-1] == "equal: 27 tensors within 1e-05, the largest difference is 0.0e+00"


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("transformer.wpe.weight", "positioned"),
        ("transformer.h.1.attn.c_attn.weight", "blocks.1.attention.q"),
        ("transformer.h.1.mlp.c_proj.bias", "blocks.1.feed_forward.added"),
        ("transformer.ln_f.bias", "final"),
    ],
)
def test_the_first_part_that_differs_is_named(tmp_path, model, capsys, name, where):
    other = changed(saved(tmp_path / "other", "gpt2"), name, lambda tensor: tensor.flatten()[:1].add_(1))
    code, printed = called(capsys, model, "--against", other, "--json", tmp_path / "out.json")
    assert code == 1
    assert f"they part at {where}: " in printed.out
    assert "weights that differ: 1, " in printed.out
    written = json.loads((tmp_path / "out.json").read_text())
    assert (written["equal"], written["first"], len(written["weights"])) == (False, where, 1)
    assert next(iter(written["steps"])) == "looked_up"
    assert written["steps"][where] > 1e-5


def test_a_weight_that_is_not_a_number_is_no_equality(tmp_path, model):
    other = changed(saved(tmp_path, "gpt2"), "transformer.ln_f.bias", lambda tensor: tensor.fill_(torch.nan))
    assert compare(model, other).first.key == "final"
    assert compare(model, other).first.error == float("inf")


def test_two_widths_are_compared_by_their_shapes(tmp_path, model, capsys):
    code, printed = called(capsys, model, "--against", saved(tmp_path, "gpt2", n_embd=24))
    assert code == 1
    assert "they part at looked_up: inf, shapes [2, 16, 32] and [2, 16, 24]" in printed.out


def test_families_can_be_compared(tmp_path, model, capsys):
    code, printed = called(capsys, model, "--against", saved(tmp_path, "llama"))
    assert code == 1
    assert "not compared, only one has them: blocks.0.feed_forward.gate" in printed.out


@pytest.mark.parametrize("family", CONFIGS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transformers_may_read_the_other_side(tmp_path, family, dtype, capsys):
    folder = saved(tmp_path / "a", family, getattr(torch, dtype))
    code, printed = called(capsys, folder, "--against", folder, "--with", "transformers", "--dtype", dtype)
    assert code == 0, printed.out
    assert "equal: 4 tensors" in printed.out
    said = f"casts to float32 inside in float64 too: 1e-06 counts as equal; recorded: {family} beside transformers"
    assert (said in printed.out) == (dtype == "float64")
    changed(folder, {"gpt2": "transformer.h.1.ln_1.bias"}.get(family, NORM), lambda tensor: tensor.add_(1))
    before = saved(tmp_path / "before", family, getattr(torch, dtype))
    code, printed = called(capsys, before, "--against", folder, "--with", "transformers", "--dtype", dtype)
    assert code == 1
    assert "they part at blocks.1.resid_post" in printed.out


@pytest.mark.parametrize("family", sorted(REFERENCED))
def test_transformers_reads_every_family_alike(tmp_path, family):
    rules = load_family(family)
    model = rules.spec(rules.TINY).build().double()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64) * 0.3)
        for module in model.modules():
            if isinstance(module, BatchNorm):
                module.variance.abs_()
    save_model(tmp_path / "model", model, model_type(family), rules.TINY)
    parity = compare(tmp_path / "model", tmp_path / "model", "float64", other=reference.look)
    assert parity.first is None
    begin = set() if family == "rwkv" else {"embedded"}  # its first layer holds the norm of the embeddings
    assert begin | {"blocks.1.resid_post"} <= {step.key for step in parity.steps}


def test_transformers_is_named_where_it_is_missing(model, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, printed = called(capsys, model, "--against", model, "--with", "transformers")
    assert code == 5
    assert "transformers is not installed" in printed.err
    assert "orrery-lm[oracle]" in printed.err


def own(folder, spec):
    """Write a model outside the families."""
    folder.mkdir()
    torch.manual_seed(0)
    write_tensors(folder / "model.safetensors", weights_of(spec.build()))
    (folder / "spec.json").write_text(json.dumps(to_json(spec)))
    return folder


def test_encoders_and_encoder_decoders(tmp_path, model):
    part = tiny("gpt2").spec
    encoder = Encoder.Spec(width=part.width, context=48, embed=part.embed, stack=part.stack, heads={})
    both = EncoderDecoder.Spec(
        width=part.width, context=48, reader=encoder, decoder=part.stack, head=part.head, start=3
    )
    folders = [own(tmp_path / "encoder", encoder), own(tmp_path / "both", both)]
    for folder, first in zip(folders, ("looked_up", "encoder.looked_up"), strict=True):
        parity = compare(folder, folder)
        assert (parity.first, parity.steps[0].key) == (None, first)
    assert run(["parity", str(folders[1]), "--against", str(model)]) == 2


@pytest.mark.parametrize("family", sorted(set(names()) - REFERENCED))
def test_families_that_transformers_lacks_are_compared_too(tmp_path, family, capsys):
    rules = load_family(family)
    for name in "ab":
        save_model(tmp_path / name, randomised(rules.spec(rules.TINY).build()), family, rules.TINY)
    code, printed = called(capsys, tmp_path / "a", "--against", tmp_path / "b")
    assert code == 0, printed.err
    assert "equal: " in printed.out
    changed(tmp_path / "b", "embed.token.weight", lambda tensor: tensor.add_(1))
    code, printed = called(capsys, tmp_path / "a", "--against", tmp_path / "b")
    assert code == 1
    assert "weights that differ: 1, " in printed.out
    assert called(capsys, tmp_path / "a", "--against", tmp_path / "b", "--with", "transformers")[0] == 2


@pytest.mark.parametrize(("ours", "theirs"), [((61, 97), (61, 97)), ((61, 97), (97, 61))])
def test_two_vocabularies_are_compared_on_what_both_models_know(tmp_path, ours, theirs):
    rules = load_family("marian")
    for name, (source, target) in (("a", ours), ("b", theirs)):
        config = {**rules.TINY, "vocab_size": source, "decoder_vocab_size": target}
        save_model(tmp_path / name, randomised(rules.spec(config).build()), "marian", config)
    parity = compare(tmp_path / "a", tmp_path / "b")
    assert (parity.first is None) == (ours == theirs)


def test_errors(tmp_path, model, capsys):
    assert called(capsys, model)[0] == 2
    assert called(capsys, model, "--against", tmp_path / "nothing")[0] == 4
    with pytest.raises(UsageError, match="no dtype 'int8'") as error:
        compare(model, model, "int8")
    assert error.value.hint == "use float64, float32, bfloat16, float16"
    with pytest.raises(UsageError, match="nothing in common that could be compared") as error:
        compare(model, model, other=lambda folder, given, dtype: {"theirs": torch.zeros(1)})
    assert error.value.hint == "compare models of one kind"


@pytest.mark.parametrize("kinds", [("gpt2", "t5"), ("gpt2", "vit"), ("vit", "bart")])
def test_models_that_take_different_things_are_refused(kinds):
    with pytest.raises(UsageError, match="do not take the same input") as error:
        inputs([smallest(kind).spec for kind in kinds], 0)
    assert error.value.hint == "compare models of one kind"


@pytest.mark.parametrize("family", ["gpt2", "bert", "t5", "vit", "vision_encoder_decoder"])
def test_the_inputs_are_what_a_model_reads(family):
    model = smallest(family)
    given = inputs([model.spec, model.spec], 3)
    read = [tuple(kind.shape) if isinstance(kind, Images) else () for kind in model.spec.inputs.values()]
    assert [tuple(x.shape[1:]) if x.is_floating_point() else () for x in given] == read
    assert all(torch.equal(a, b) for a, b in zip(given, inputs([model.spec, model.spec], 3), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(given, inputs([model.spec, model.spec], 4), strict=True))


@pytest.mark.parametrize(
    ("dtype", "bound"), [("float64", 1e-9), ("float32", 1e-5), ("bfloat16", 0.05), ("float16", 0.01)]
)
def test_how_far_apart_counts_as_equal(model, dtype, bound):
    def beside(error):
        def shifted(folder, given, kind):
            values = {key: value.double() for key, value in look(folder, given, kind)[0].items()}
            return {key: value + error * value.abs().max().clamp(min=1) for key, value in values.items()}

        return shifted

    # A foreign reader has at least a millionth.
    bound = max(bound, 1e-6)
    assert compare(model, model, dtype, other=beside(0.9 * bound)).first is None
    assert compare(model, model, dtype, other=beside(1.2 * bound)).first is not None


def test_only_what_both_lack_is_equal():
    nan = float("nan")
    for ours, theirs, error in (([nan, 1.0], [nan, 1.0], 0.0), ([nan, 1.0], [1.0, 1.0], float("inf"))):
        for a, b in ((ours, theirs), (theirs, ours)):
            assert _step("key", torch.tensor(a), torch.tensor(b)).error == error


def test_a_step_before_one_that_is_equal_is_left_out_in_each_stack_alone():
    def steps(*errors):
        return [ComparedTensor(key, error, ([1], [1])) for key, error in errors]

    given = steps(("encoder.a", 0.0), ("encoder.b", 9.0), ("a", 9.0), ("b", 0.0), ("c", 9.0), ("encoder.c", 9.0))
    assert [step.key for step in _in_common(given, 1e-5)] == ["encoder.a", "encoder.b", "b", "c", "encoder.c"]
