"""Exports: what comes out is compared before it gets its name, and what cannot be said is refused by name."""

import json
from dataclasses import replace

import pytest
import torch

from full_disk import no_room
from orrery.checkpoints import gguf
from orrery.errors import MachineError, ModelFileError, RunError, UsageError
from orrery.exchange.exporting import export
from orrery.exchange.exporting.export import export_gguf, export_hf
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer
from tiny_models import CONFIGS, TOKENIZER, saved, tiny

WIDE = {"intermediate_size": 64}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return read(saved(tmp_path_factory.mktemp("model"), "llama", **WIDE))


def left(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kind", gguf.KINDS)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_gguf_tells_what_it_wrote(tmp_path, family, kind):
    model = read(saved(tmp_path / "model", family, **(WIDE if family == "llama" else {})))
    done = export_gguf(model, tmp_path / "out" / "x.gguf", kind)
    assert left(tmp_path / "out") == ["x.gguf"]
    assert (done.size, done.form) == (done.path.stat().st_size, f"GGUF, {family}, {kind}")
    assert (done.deviation == 0) == (kind == "f32")
    facts = gguf.read_gguf(done.path).facts
    assert facts[f"{family}.block_count"] == 2
    assert facts["tokenizer.ggml.tokens"] == [TOKENIZER.token(id) for id in range(TOKENIZER.size)]
    assert facts["tokenizer.ggml.eos_token_id"] == facts["tokenizer.ggml.bos_token_id"] == TOKENIZER.special("end")
    assert facts["tokenizer.ggml.token_type"][:2] == [3, 1]


@pytest.mark.parametrize(
    ("dtype", "kind"), [(torch.float64, "f32"), (torch.float32, "f32"), (torch.bfloat16, "bf16"), (torch.half, "f16")]
)
def test_the_kind_is_the_models_own_where_none_is_named(tmp_path, dtype, kind):
    done = export_gguf(read(saved(tmp_path / "model", "llama", dtype)), tmp_path / "x.gguf")
    assert done.form.endswith(kind)
    assert (done.deviation == 0) == (dtype is not torch.float64)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_hf_is_a_folder_with_the_same_bytes(tmp_path, dtype):
    source = read(saved(tmp_path / "model", "gpt2", dtype))
    done = export_hf(source, tmp_path / "out")
    assert left(tmp_path / "out") == left(tmp_path / "model")
    for path in (tmp_path / "model").iterdir():
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes(), path.name
    assert (done.parameters, done.deviation) == (sum(p.numel() for p in source.model.parameters()), 0.0)


def test_what_exists_is_never_overwritten(tmp_path, stored):
    (tmp_path / "x").write_text("mine")
    for write in (export_gguf, export_hf):
        with pytest.raises(UsageError, match=r"x (exists already|is a file)") as caught:
            write(stored, tmp_path / "x")
        assert "choose another name" in caught.value.hint
    assert (tmp_path / "x").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    export_hf(stored, tmp_path / "empty")
    with pytest.raises(UsageError, match="not empty"):
        export_hf(stored, tmp_path / "empty")


@pytest.mark.parametrize("limit", [1000, 40_000, 150_000])
@pytest.mark.parametrize("write", [export_gguf, export_hf])
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path, stored, write, limit):
    told = r"no room to write .*: [\d,]+ bytes needed, [\d,]+ free"
    with no_room(limit), pytest.raises(MachineError, match=told):
        write(stored, tmp_path / "x")
    assert left(tmp_path) == []


def test_a_folder_without_rights_is_told(tmp_path, stored, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(gguf, "write_gguf", refuse)
    with pytest.raises(MachineError, match="cannot write in"):
        export_gguf(stored, tmp_path / "x.gguf")


def test_a_damaged_file_is_found_and_leaves_nothing(tmp_path, stored, monkeypatch):
    honest = gguf.write_gguf

    def flip(path, architecture, facts, tensors, kind, kept, change):
        facts, tensors = change(dict(facts), dict(tensors))
        honest(path, architecture, facts, tensors, kind, kept)

    def other_fact(facts, tensors):
        return {**facts, "llama.block_count": 3}, tensors

    def lost_tensor(facts, tensors):
        return facts, {name: tensor for name, tensor in tensors.items() if name != "output_norm.weight"}

    def other_tensor(facts, tensors):
        return facts, {**tensors, "blk.1.attn_q.weight": tensors["blk.1.attn_q.weight"].flip(0)}

    changes = {other_fact: "the fact llama.block_count", lost_tensor: "set of tensors", other_tensor: "blk.1.attn_q"}
    for change, told in changes.items():
        monkeypatch.setattr(gguf, "write_gguf", lambda *a, change=change: flip(*a, change))
        with pytest.raises(RunError, match=told):
            export_gguf(stored, tmp_path / "x.gguf", "q8_0")
        assert left(tmp_path) == []


def test_a_damaged_folder_is_found_and_leaves_nothing(tmp_path, stored, monkeypatch):
    honest = export.read

    def damaged(folder):
        exported = honest(folder)
        with torch.no_grad():
            exported.model.stack.final.weight[0] += 1
        return exported

    monkeypatch.setattr(export, "read", damaged)
    with pytest.raises(RunError, match=r"stack\.final\.weight differs"):
        export_hf(stored, tmp_path / "x")
    assert left(tmp_path) == []


def with_another_base(exported):
    """Change a number of the architecture that no weight shows."""
    base = exported.model.spec.stack.positions["rotary"]
    positions = {"rotary": replace(base, base=2 * base.base)}
    exported.model.spec = replace(exported.model.spec, stack=replace(exported.model.spec.stack, positions=positions))
    return exported


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("the architecture", with_another_base),
        (
            "the tokenizer",
            lambda exported: replace(exported, tokenizer=train_tokenizer("byte_bpe", ["other text\n"] * 3, 290)),
        ),
        ("the tokenizer", lambda exported: replace(exported, tokenizer=None)),
        ("the chat template", lambda exported: replace(exported, chat={"default": "{{ messages }}"})),
    ],
)
def test_a_folder_that_is_read_back_as_another_model_leaves_nothing(tmp_path, stored, monkeypatch, what, change):
    monkeypatch.setattr(export, "read", lambda folder: change(read(folder)))
    with pytest.raises(RunError, match=f"the export was read back, and {what} differs; nothing was left") as error:
        export_hf(stored, tmp_path / "out")
    assert "the disk or its memory may be failing" in error.value.hint
    assert left(tmp_path) == []


def test_a_family_that_llama_cpp_lacks_is_refused_by_name(tmp_path, stored):
    for family, told in (("madeup", "the family 'madeup'"), (None, "a model without a family")):
        with pytest.raises(UsageError, match=f"{told} cannot be written to GGUF") as caught:
            export_gguf(replace(stored, family=family), tmp_path / "x.gguf")
        assert "llama" in caught.value.hint
    with pytest.raises(UsageError, match="does not say which family"):
        export_hf(replace(stored, family=None), tmp_path / "x")
    assert left(tmp_path) == []


ROTATION = {"rope_theta": 500.0, "rope_type": "dynamic", "factor": 2.0}


@pytest.mark.parametrize(
    ("family", "config", "told"),
    [
        ("gpt2", {"activation_function": "relu"}, "feed_forward.branch.activation = relu (a reader takes gelu_tanh)"),
        ("gpt2", {"scale_attn_weights": False}, "attention.branch.scoring.scale = 1.0 (a reader takes None)"),
        ("llama", {"hidden_act": "gelu"}, "activation = gelu (a reader takes silu)"),
        ("llama", {"rope_parameters": ROTATION}, "scaling.kind = nn.positions.rotary.Dynamic"),
        ("llama", {"hidden_act": "quick_gelu"}, "activation = gelu_sigmoid (a reader takes silu)"),
    ],
    ids=str,
)
def test_a_setting_that_gguf_cannot_say_is_refused_by_name(tmp_path, family, config, told):
    model = read(saved(tmp_path / "model", family, **config))
    with pytest.raises(UsageError) as caught:
        export_gguf(model, tmp_path / "x.gguf")
    assert f"GGUF's {family} cannot say" in caught.value.message
    assert told in caught.value.message
    assert left(tmp_path) == ["model"]


def test_a_tensor_without_a_place_is_refused_by_name(tmp_path, stored, monkeypatch):
    bare = replace(export.ARCHITECTURES["llama"], rules=lambda spec: ())
    monkeypatch.setitem(export.ARCHITECTURES, "llama", bare)
    with pytest.raises(UsageError, match=r"no place for embed\.token\.weight"):
        export_gguf(stored, tmp_path / "x.gguf")


def test_an_unknown_kind_is_refused(tmp_path, stored):
    with pytest.raises(UsageError, match="no type 'q2_k'"):
        export_gguf(stored, tmp_path / "x.gguf", "q2_k")


def changed(**model):
    definition = json.loads(TOKENIZER._content)
    definition["model"] |= model
    return definition


def with_part(**parts):
    return {**json.loads(TOKENIZER._content), **parts}


def with_added(**flags):
    definition = json.loads(TOKENIZER._content)
    definition["added_tokens"][0] |= flags
    return definition


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        (changed(end_of_word_suffix="</w>"), "its model sets end_of_word_suffix"),
        (changed(ignore_merges=True), "no name for its pre-tokenizer"),
        (with_part(pre_tokenizer={"type": "Whitespace"}), "no name for its pre-tokenizer"),
        (with_part(normalizer={"type": "Lowercase"}), "it has the normalizer Lowercase"),
        (with_part(decoder={"type": "Fuse"}), "it is BPE with the decoder Fuse"),
        (with_added(special=False, rstrip=True), "takes spaces with it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_tokenizer_is_refused_with_its_reason(tmp_path, stored, definition, told):
    with pytest.raises(UsageError, match="the tokenizer cannot be written to GGUF") as caught:
        export_gguf(replace(stored, tokenizer=Tokenizer(json.dumps(definition))), tmp_path / "x.gguf")
    assert told in caught.value.message
    assert "export to hf" in caught.value.hint
    assert left(tmp_path) == []


def test_a_character_tokenizer_is_refused_by_name(tmp_path, stored):
    with pytest.raises(UsageError, match="it is WordLevel with the decoder Sequence"):
        export_gguf(replace(stored, tokenizer=train_tokenizer("character", ["abc"])), tmp_path / "x.gguf")


def test_a_tokenizer_must_be_there_and_fit_the_table(tmp_path, stored):
    with pytest.raises(ModelFileError, match=r"has no tokenizer"):
        export_gguf(replace(stored, tokenizer=None), tmp_path / "x.gguf")
    config = {**CONFIGS["llama"], "vocab_size": 280}
    save_model(tmp_path / "m", tiny("llama", vocab_size=280), "llama", config, TOKENIZER)
    (tmp_path / "m" / "tokenizer.json").unlink()  # a folder with both is refused when it is read
    small = replace(read(tmp_path / "m"), tokenizer=TOKENIZER)
    with pytest.raises(UsageError, match="the tokenizer has 290 ids, the model's table 280 rows"):
        export_gguf(small, tmp_path / "x.gguf")


def test_the_ends_of_a_text_are_one_to_three(tmp_path, stored):
    some = {"eos_token_id": [7, 5, TOKENIZER.special("end")]}
    facts = gguf.read_gguf(export_gguf(replace(stored, generation=some), tmp_path / "x.gguf").path).facts
    assert [facts[f"tokenizer.ggml.{name}_token_id"] for name in ("eos", "eot", "eom")] == [0, 5, 7]
    for ids in ([1, 2, 3, 4], []):
        with pytest.raises(UsageError, match=f"the model names {len(ids)} tokens that end a text"):
            export_gguf(replace(stored, generation={"eos_token_id": ids}), tmp_path / "y.gguf")


def test_long_words_are_noted(tmp_path, stored):
    assert "64 characters" in export_gguf(stored, tmp_path / "x.gguf").notes[0]
    rule = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    other = replace(stored, tokenizer=Tokenizer(json.dumps(with_part(pre_tokenizer=rule))))
    assert export_gguf(other, tmp_path / "y.gguf").notes == ()


def test_every_chat_template_comes_back(tmp_path, stored):
    chat = {"default": "{{ messages }}", "tool_use": "{{ tools }}", "rag": "{{ documents }}"}
    path = export_gguf(replace(stored, chat=chat), tmp_path / "x.gguf").path
    assert read(path).chat == chat
    assert gguf.read_gguf(path).facts["tokenizer.chat_templates"] == ["tool_use", "rag"]
