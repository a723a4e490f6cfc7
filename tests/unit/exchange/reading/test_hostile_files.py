"""What a stranger may put into a model folder: refused at once, in little memory, and nothing in it runs."""

import json
import os
import pickle
import resource
import socket
import sys
import time
from contextlib import suppress

import pytest
import torch

from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.cli.console import report
from orrery.errors import ModelFileError, OrreryError
from orrery.exchange.reading.architecture import of_family
from orrery.exchange.reading.read import read
from orrery.families import load_family, names
from orrery.nn.spec import to_json
from tiny_models import saved, tiny

WTE = "transformer.wte.weight"


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory):
    """Load once, so that what torch imports at its first use is not taken for what a file made it import."""
    read(saved(tmp_path_factory.mktemp("warm"), "gpt2"))


@pytest.fixture
def folder(tmp_path):
    return saved(tmp_path / "model", "gpt2")


class Touch:
    """A pickle that leaves a file behind when it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mknod, (str(self.path),)


def config(**changes):
    def change(folder):
        content = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**content, **changes}))

    return change


def text(name, content):
    return lambda folder: (folder / name).write_text(content)


def weights(change):
    def rewrite(folder):
        tensors = read_tensors(folder / "model.safetensors")
        change(tensors)
        write_tensors(folder / "model.safetensors", tensors)

    return rewrite


def index(places):
    def write(folder):
        (folder / "model.safetensors").rename(folder / "a.safetensors")
        whole = dict.fromkeys(read_tensors(folder / "a.safetensors"), "a.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {**whole, **places}}))

    return write


def header(content):
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()

    def write(folder):
        (folder / "model.safetensors").write_bytes(len(raw).to_bytes(8, "little") + raw)

    return write


def only_a_pickle(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(folder / "executed")))


def pickle_by_another_name(folder):
    (folder / "model.safetensors").write_bytes(pickle.dumps(Touch(folder / "executed")))


def a_pipe(name):
    def make(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return make


def endless(name):
    def make(folder):
        (folder / name).unlink()
        (folder / name).symlink_to("/dev/zero")

    return make


def own_spec(content):
    def write(folder):
        (folder / "config.json").unlink()
        (folder / "spec.json").write_text(content if isinstance(content, str) else json.dumps(content))

    return write


def changed_spec(**changes):
    return lambda folder: own_spec({**to_json(tiny("gpt2").spec), **changes})(folder)


EMPTY = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
HOSTILE = {
    # item 9 to 11: safetensors that are cut, damaged or bombs; more of them in unit/checkpoints/test_tensors.py
    "weights cut": (lambda f: os.truncate(f / "model.safetensors", 5000), "bytes expected"),
    "weights of zero bytes": (lambda f: os.truncate(f / "model.safetensors", 0), "is empty"),
    "header of 2^62 bytes": (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 7 + b"\x40"), "a header of"),
    "header of 101 MB": (header(b"{" + b" " * 101_000_000 + b"}"), "a header of"),
    "weights are a pipe": (a_pipe("model.safetensors"), "is missing"),
    "weights are a pickle": (pickle_by_another_name, "a header of"),
    "only a pickle": (only_a_pickle, "a pickle, which can run any code"),
    # item 12: many tensors, keys twice, odd names
    "20,001 tensors": (header({str(n): EMPTY for n in range(20_001)}), "more than 20,000 tensors"),
    "a tensor twice": (header(b'{"a":%s,"a":%s}' % ((json.dumps(EMPTY).encode(),) * 2)), "comes twice"),
    "name with a path": (weights(lambda t: t.update({"../../a": t[WTE]})), "1 unexpected: ../../a"),
    "empty name": (weights(lambda t: t.update({"": t[WTE]})), "1 unexpected: "),
    "name that steers a terminal": (weights(lambda t: t.update({"\x1b[2J": t[WTE]})), "unexpected"),
    "name of 100,000 letters": (weights(lambda t: t.update({"a" * 100_000: t[WTE]})), "unexpected"),
    # item 13: config and weights of two models
    "missing tensor": (weights(lambda t: t.pop(WTE)), f"1 missing: {WTE}"),
    "another shape": (weights(lambda t: t.update({WTE: t[WTE][:5].clone()})), r"shape \[5, 32\]"),
    "another vocabulary": (config(vocab_size=300), r"\[290, 32\], the configuration says \[300, 32\]"),
    "another depth": (config(n_layer=3), "12 missing"),
    "too many faults to list": (weights(lambda t: t.update({f"x{i}": t[WTE] for i in range(50)})), "50 unexpected"),
    # item 14: shards
    "missing shard": (index({"x": "b.safetensors"}), "lacks 1 of the 2 shards that its index names: b.safetensors"),
    "shard above the folder": (index({"x": "../b.safetensors"}), "names the shard"),
    "shard at the root": (index({"x": "/b.safetensors"}), "names the shard"),
    "shard of another kind": (index({"x": "b.py"}), "names the shard"),
    "index of too many names": (index({"x": "a.safetensors"}), "differ in 'x'"),
    "index of numbers": (index({"x": 1}), "no weight_map"),
    "index bomb": (
        lambda f: [(f / "model.safetensors").unlink(), text("model.safetensors.index.json", "[]," * 5_000_000)(f)],
        "at most 12,000,000 bytes",
    ),
    "deep index": (
        lambda f: [(f / "model.safetensors").unlink(), text("model.safetensors.index.json", "[" * 1_000_000)(f)],
        "not JSON",
    ),
    # config.json
    "huge configuration": (text("config.json", '{"a": "' + "x" * 5_000_000 + '"}'), "at most 4,000,000 bytes"),
    "full configuration": (text("config.json", '{"a": [' + "[]," * 1_300_000 + "[]]}"), "names no model_type"),
    "deep configuration": (text("config.json", '{"a":' * 500_000), "not JSON"),
    "long number": (text("config.json", '{"a":' + "9" * 10_000 + "}"), "not JSON"),
    "no number": (text("config.json", '{"a": NaN}'), "NaN is no number"),
    "endless number": (text("config.json", '{"a": 1e999}'), "beyond all numbers"),
    "key twice": (text("config.json", '{"model_type": "gpt2", "model_type": "llama"}'), "'model_type' comes twice"),
    "not text": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe{}"), "not JSON"),
    "configuration is a pipe": (a_pipe("config.json"), "neither config.json nor checkpoints"),
    "configuration without an end": (endless("config.json"), "neither config.json nor checkpoints"),
    "family with a path": (config(model_type="../gpt2"), "no family"),
    "family of another package": (config(model_type="os.path"), "no family"),
    "private module as a family": (config(model_type="_registry"), "no family"),
    "family is a list": (config(model_type=["gpt2"]), "no family"),
    "a billion layers": (config(n_layer=10**9), "more than any model has"),
    "a thousand layers": (config(n_layer=1000), "the files hold"),
    "a wide model": (config(n_embd=2**20, n_head=1), "the files hold"),
    "a vocabulary beyond all memory": (config(vocab_size=2**40), "more than any model has"),
    "layers of less than nothing": (config(n_layer=-1), "less than zero"),
    "width of less than nothing": (config(n_embd=-32), "less than zero"),
    "no heads": (config(n_head=0), "not divisible by n_head = 0"),
    "width is a word": (config(n_embd="32"), "a text, not a number"),
    "width is a list": (config(n_embd=[32]), "a list, not a number"),
    "width is an object": (config(n_embd={"a": 32}), "an? object, not a number"),
    "truth is a word": (config(tie_word_embeddings="false"), "a text, not a truth value"),
    "a key that could change the numbers": (config(layer_types=["full"]), "the key 'layer_types' may change numbers"),
    "quantised weights": (config(quantization_config={"bits": 4}), "quantised by an unnamed method"),
    "a setting that is not there yet": (config(add_cross_attention=True), "add_cross_attention = True"),
    "end token is an object": (text("generation_config.json", '{"eos_token_id": {}}'), "no token number"),
    # spec.json, the layout of our own runs
    "spec of a foreign kind": (own_spec({"kind": "os.system", "command": "true"}), "not a kind of this package"),
    "spec of a path": (own_spec({"kind": "nn.spec.importlib"}), "not a kind of this package"),
    "spec of a module": (own_spec({"kind": "models.decoder.Tensor"}), "is not a spec"),
    "spec of a part": (own_spec({"kind": "nn.norms.RMSNorm", "eps": 1e-6}), "not a whole model"),
    "spec without fields": (own_spec({"kind": "models.decoder.Decoder"}), "missing"),
    "spec with senseless fields": (changed_spec(width="wide"), "no model that can be built|spec: |width is 'wide'"),
    "spec of less than nothing": (changed_spec(width=-4), "width is -4"),
    "deep spec": (own_spec('{"kind":' * 100_000), "not JSON"),
    "recipe bomb": (
        lambda f: [
            own_spec(to_json(tiny("gpt2").spec))(f),
            text("../config.yaml", "a: &a [" + "x," * 100_000 + "]")(f),
        ],
        "unexpected",
    ),
    # item 31: more of them in unit/text/test_tokenizer.py
    "tokenizer of nothing": (text("tokenizer.json", "[" * 100_000), "tokenizer.json is not JSON"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_at_once_and_nothing_runs(name, folder, monkeypatch, capsys):
    damage, says = HOSTILE[name]
    damage(folder)
    monkeypatch.setattr(socket, "socket", None)
    modules, memory = set(sys.modules), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []  # of this process alone; twice, since a busy neighbour of the same core slows it as well
    for _ in range(2):
        start = time.process_time()
        with pytest.raises(ModelFileError, match=says) as caught:
            read(folder)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 300_000
    assert not (folder / "executed").exists()
    ours = ("orrery.", "torch.", "beartype.", "wadler_lindig")  # the last two are the tests' own check of types
    assert not {module for module in set(sys.modules) - modules if not module.startswith(ours)}
    assert report(caught.value) == 4
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 2
    assert len(told) < 3000
    assert "\x1b" not in told


CODE = "import os\nos.mknod({path!r})\nclass Evil: ...\n"


@pytest.mark.parametrize(
    "keys",
    [
        {"auto_map": {"AutoModelForCausalLM": "modeling_evil.Evil", "AutoConfig": "org/name--modeling_evil.Evil"}},
        {"_attn_implementation_internal": "org/name:kernel"},
        {"_attn_implementation": "org/name:kernel", "attn_implementation": "org/name"},
        {"trust_remote_code": True},
        {"task_specific_params": {"text-generation": {"trust_remote_code": True, "auto_map": {"AutoModel": "a.B"}}}},
    ],
    ids=lambda keys: next(iter(keys)),
)
def test_a_key_that_names_code_runs_none_and_changes_no_number(keys, folder, monkeypatch):
    ids = torch.tensor([[1, 2, 3]])
    expected = read(folder).model.logits(ids)
    (folder / "modeling_evil.py").write_text(CODE.format(path=str(folder / "executed")))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": ["modeling_evil.Evil"] * 2}})
    )
    config(**keys)(folder)
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.chdir(folder)
    modules = set(sys.modules)
    loaded = read(folder)
    assert torch.equal(loaded.model.logits(ids), expected)
    assert not set(sys.modules) - modules
    assert not (folder / "executed").exists()
    loaded.tokenizer.encode("text")


@pytest.mark.each_family
@pytest.mark.parametrize("family", names())
def test_every_family_refuses_an_unknown_key_by_name(family):
    rules = load_family(family)
    with pytest.raises(ModelFileError, match="unknown key 'mystery_scale'"):
        rules.spec({**rules.TINY, "mystery_scale": 2.0})


@pytest.mark.parametrize("family", names())
@pytest.mark.parametrize("value", [10**12, -1, 0, "x", [], {}, True, 0.5])
def test_no_value_of_any_key_makes_a_family_crash(family, value, tmp_path):
    rules = load_family(family)
    for key in rules.DEFAULTS:
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**rules.TINY, key: value}))
        with suppress(OrreryError):
            of_family(family, path)


def test_more_parameters_than_the_files_hold_are_refused_before_they_are_built(folder):
    config(n_layer=900, n_embd=4096, n_head=32)(folder)
    with pytest.raises(ModelFileError, match=r"describes 181,\d{3},\d{3},\d{3} parameters, the files hold"):
        read(folder)
