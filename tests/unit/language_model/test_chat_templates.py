"""A model's chat template is found, kept byte for byte, and used; a model without one says so."""

import json
from dataclasses import replace

import pytest

import orrery
from chat_toy import chat_tokenizer
from orrery.cli import serve
from orrery.cli.program import run
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.language_model.model import LanguageModel
from orrery.text.chat.formats import ChatFormat
from orrery.text.chat.render import chat_format
from orrery.text.tokenizer import Tokenizer
from tiny_models import CONFIGS, TOKENIZER, saved, tiny

# Windows line ends, no line end at the end, letters beyond ASCII: nothing may be tidied up.
SOURCE = "{# été 日本 #}\r\n" + ChatFormat("mistral").jinja()
CHAT = [{"role": "user", "content": "What is 1 + 1?"}, {"role": "assistant", "content": "It is 2."}]


def model(folder, tokenizer=None, chat=None):
    tokenizer = tokenizer or chat_tokenizer("mistral")
    config = {**CONFIGS["llama"], "vocab_size": tokenizer.size, "max_position_embeddings": 128}
    sizes = {key: config[key] for key in ("vocab_size", "max_position_embeddings")}
    save_model(folder, tiny("llama", **sizes), "llama", config, tokenizer, chat=chat)
    return folder


def configured(folder, template):
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"chat_template": template}))
    return folder


@pytest.fixture
def published(tmp_path):
    """Yield the three ways in which folders hold a template."""
    file = model(tmp_path / "file")
    (file / "chat_template.jinja").write_bytes(SOURCE.encode())
    listed = [{"name": "default", "template": SOURCE}, {"name": "tool_use", "template": "tools"}]
    return [file, configured(model(tmp_path / "text"), SOURCE), configured(model(tmp_path / "list"), listed)]


def test_a_template_is_found_and_saved_byte_for_byte(published, tmp_path):
    for folder in published:
        lm = orrery.load(folder, "cpu", say=str)
        lm.save(tmp_path / f"{folder.name}-saved")
        again = tmp_path / f"{folder.name}-saved"
        assert (again / "chat_template.jinja").read_bytes() == SOURCE.encode()
        assert read(again).chat == read(folder).chat
        assert lm.chat_ids(CHAT) == orrery.load(again, "cpu", say=str).chat_ids(CHAT)
    assert read(published[2]).chat["tool_use"] == "tools"
    assert (again / "additional_chat_templates" / "tool_use.jinja").read_text() == "tools"


def test_export_and_import_keep_it(published, tmp_path, capsys):
    for folder in published:
        for verb in (["export", str(folder), "hf"], ["import", str(folder)]):
            out = tmp_path / f"{folder.name}-{verb[0]}"
            assert run([*verb, str(out)]) == 0, capsys.readouterr()
            assert (out / "chat_template.jinja").read_bytes() == SOURCE.encode()
            assert read(out).chat == read(folder).chat


def test_transformers_reads_what_was_saved(published, tmp_path):
    import transformers

    orrery.load(published[0], "cpu", say=str).save(tmp_path / "out")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    ours = orrery.load(tmp_path / "out", "cpu", say=str)
    assert theirs.apply_chat_template(CHAT)["input_ids"] == ours.chat_ids(CHAT).ids


def test_ids_to_learn_from_say_what_the_assistant_wrote(published):
    lm = orrery.load(published[0], "cpu", say=str)
    rendered = lm.chat_ids(CHAT)
    said = [id for id, reply in zip(rendered.ids, rendered.reply, strict=True) if reply]
    assert lm.tokenizer.decode(said, special=True).strip() == "It is 2.</s>"
    assert lm.chat_ids(CHAT, template="mistral") == rendered == chat_format("mistral", lm.tokenizer).render(CHAT)
    prompt = lm.chat_ids(CHAT[:1], prompt=True)
    assert rendered.ids[: len(prompt.ids)] == prompt.ids
    assert not any(prompt.reply)


def test_a_reply_takes_a_template_by_name_and_the_templates_variables(published):
    lm = orrery.load(published[0], "cpu", say=str)
    assert lm.reply(CHAT[:1], template="mistral", max_new_tokens=2).ids == lm.reply(CHAT[:1], max_new_tokens=2).ids
    source = published[0] / "loud.jinja"
    source.write_text("{{ tools[0].function.name }}[INST]{{ messages[0].content }}")
    tools = [{"type": "function", "function": {"name": "the cat"}}]
    reply = lm.reply(CHAT[:1], template=source, variables={"tools": tools}, max_new_tokens=2)
    assert reply.ids == lm.reply(CHAT[:1], template=lm.chat_template(source), variables={"tools": tools},
                                 max_new_tokens=2).ids  # fmt: skip


@pytest.mark.parametrize("name", ["mistral", "file"])
def test_another_template_is_that_of_every_door(name, tmp_path):
    lm = orrery.load(model(tmp_path, chat={"default": "{{ messages[0]['content'] }}"}), "cpu", say=str)
    (tmp_path / "file.jinja").write_text(ChatFormat("mistral").jinja())
    other = lm.with_template("mistral" if name == "mistral" else tmp_path / "file.jinja")
    expected = lm.chat_ids(CHAT[:1], prompt=True, template="mistral").ids
    assert other.chat_ids(CHAT[:1], prompt=True).ids == expected
    assert lm.chat_ids(CHAT[:1], prompt=True).ids != expected
    reply = other.reply(CHAT[:1], max_new_tokens=4, temperature=0.0)
    assert reply.ids == lm.reply(CHAT[:1], template="mistral", max_new_tokens=4, temperature=0.0).ids
    assert (
        serve._load(str(tmp_path), "cpu", "auto", None, str(name if name == "mistral" else tmp_path / "file.jinja"))
        .chat_ids(CHAT[:1], prompt=True)
        .ids
        == expected
    )
    other.save(tmp_path / "saved")
    assert orrery.load(tmp_path / "saved", "cpu", say=str).chat_ids(CHAT[:1], prompt=True).ids == expected


def test_a_template_that_the_tokenizer_cannot_say_is_refused_before_any_chat(tmp_path):
    lm = orrery.load(model(tmp_path, TOKENIZER), "cpu", say=str)
    for choice in ("chatml", "nothing", tmp_path, 3):
        with pytest.raises(UsageError):
            lm.with_template(choice)
    (tmp_path / "bad.jinja").write_text("{{ raise_exception('no') }}")
    with pytest.raises((ModelFileError, DataError)):
        lm.with_template(tmp_path / "bad.jinja")


def test_a_model_without_a_template_says_how_to_give_one(tmp_path):
    lm = orrery.load(saved(tmp_path / "bare", "llama"), "cpu", say=str)
    with pytest.raises(ModelFileError, match=r"bare has no chat template.*template=NAME.*zephyr, or a Jinja file"):
        lm.chat_ids(CHAT)
    with pytest.raises(UsageError, match="no special token"):
        lm.chat_ids(CHAT, template="gemma")


@pytest.mark.parametrize("bad", [b"a" * 65537, b"\xff"], ids=["large", "bytes"])
def test_a_template_that_no_model_has_is_refused_at_load(tmp_path, bad):
    folder = model(tmp_path / "bad")
    (folder / "chat_template.jinja").write_bytes(bad)
    with pytest.raises(ModelFileError, match=r"chat_template\.jinja"):
        read(folder)


@pytest.mark.parametrize("template", [[{"name": "../x", "template": "x"}], "a" * 65537, "\ud800" * 30_000])
def test_a_configured_template_is_limited_as_well(tmp_path, template):
    folder = configured(model(tmp_path / "bad"), template)
    with pytest.raises(ModelFileError, match="chat template"):
        read(folder)


def test_a_start_token_is_never_doubled(tmp_path):
    """The template writes the start token; the tokenizer's own rule would add another."""
    definition = json.loads(json.dumps(chat_tokenizer("mistral").definition))
    start = {"id": "<s>", "ids": [1], "tokens": ["<s>"]}
    definition["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": start},
    }
    tokenizer = Tokenizer(json.dumps(definition))
    lm = orrery.load(model(tmp_path / "adds", tokenizer, {"default": SOURCE}), "cpu", say=str)
    assert lm.chat_ids(CHAT).ids.count(tokenizer.special("start")) == 1
    lm = orrery.load(model(tmp_path / "twice", tokenizer, {"default": "<s>" + SOURCE}), "cpu", say=str)
    with pytest.raises(ModelFileError, match="start token <s> is doubled"):
        lm.chat_ids(CHAT)


def test_a_broken_template_hurts_only_chats(tmp_path):
    lm = orrery.load(model(tmp_path / "broken", chat={"default": "{% if %}"}), "cpu", say=str)
    assert lm.generate("the", max_new_tokens=2) is not None
    with pytest.raises(ModelFileError, match="chat template says"):
        lm.chat_ids(CHAT)


def test_ids_outside_the_model_are_refused(tmp_path):
    tokenizer = chat_tokenizer("mistral")
    config = {**CONFIGS["llama"], "vocab_size": 10}
    save_model(tmp_path / "small", tiny("llama", vocab_size=10), "llama", config, tokenizer, chat={"default": SOURCE})
    (tmp_path / "small" / "tokenizer.json").unlink()  # a folder with both is refused when it is read
    stored = replace(read(tmp_path / "small"), tokenizer=tokenizer)
    with pytest.raises(DataError, match="outside the vocabulary of 10"):
        LanguageModel(stored).reply(CHAT[:1])


def test_gguf_says_the_template(tmp_path):
    import gguf

    config = CONFIGS["gpt2"]
    save_model(tmp_path / "model", tiny("gpt2"), "gpt2", config, TOKENIZER, chat={"default": "{{ messages }}"})
    assert run(["export", str(tmp_path / "model"), "gguf", str(tmp_path / "x.gguf")]) == 0
    field = gguf.GGUFReader(tmp_path / "x.gguf").fields["tokenizer.chat_template"]
    assert field.contents() == "{{ messages }}"
