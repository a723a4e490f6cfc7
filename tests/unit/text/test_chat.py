"""Conversations to ids: the shipped formats, their Jinja twins, the replies, the start token."""

import json

import pytest
import transformers

from chat_toy import CONTROLS, chat_tokenizer, prepending_first, with_added
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.text.chat.formats import FORMATS, ChatFormat
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.render import ChatTemplate, chat_format, load_chat_template

SYSTEM = {"role": "system", "content": "the cat"}
CHAT = [
    {"role": "user", "content": "What is 1 + 1?"},
    {"role": "assistant", "content": "It is 2."},
    {"role": "user", "content": "and why?"},
    {"role": "assistant", "content": "Hello there!"},
]
TEXTS = {
    "chatml": "<|im_start|>user\nWhat is 1 + 1?<|im_end|>\n<|im_start|>assistant\nIt is 2.<|im_end|>\n",
    "gemma": "<bos><start_of_turn>user\nWhat is 1 + 1?<end_of_turn>\n<start_of_turn>model\nIt is 2.<end_of_turn>\n",
    "llama-2": "<s>[INST] What is 1 + 1? [/INST] It is 2. </s>",
    "llama-3": "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhat is 1 + 1?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\nIt is 2.<|eot_id|>",
    "mistral": "<s>[INST] What is 1 + 1?[/INST] It is 2.</s>",
    "zephyr": "<|user|>\nWhat is 1 + 1?</s>\n<|assistant|>\nIt is 2.</s>\n",
}
REPLIES = {
    "chatml": ["It is 2.<|im_end|>", "Hello there!<|im_end|>"],
    "gemma": ["It is 2.<end_of_turn>", "Hello there!<end_of_turn>"],
    "llama-2": ["It is 2. </s>", "Hello there! </s>"],
    "llama-3": ["It is 2.<|eot_id|>", "Hello there!<|eot_id|>"],
    "mistral": ["It is 2.</s>", "Hello there!</s>"],
    "zephyr": ["It is 2.</s>", "Hello there!</s>"],
}


def twin(name, tokenizer=None):
    tokenizer = tokenizer or chat_tokenizer(name)
    return ChatTemplate(tokenizer, JinjaTemplate(ChatFormat(name).jinja(), tokenizer))


def without_generation(name):
    source = ChatFormat(name).jinja().replace("{% generation %}", "").replace("{% endgeneration %}", "")
    tokenizer = chat_tokenizer(name)
    return ChatTemplate(tokenizer, JinjaTemplate(source, tokenizer))


def runs(tokenizer, rendered):
    """Return the texts of the stretches that the assistant wrote."""
    groups, before = [], False
    for id, reply in zip(rendered.ids, rendered.reply, strict=True):
        if reply:
            groups = [*groups, []] if not before else groups
            groups[-1].append(id)
        before = reply
    return [tokenizer.decode(ids, special=True).strip() for ids in groups]


@pytest.mark.parametrize("name", FORMATS)
def test_the_ids_are_those_of_the_published_text(name):
    tokenizer = chat_tokenizer(name)
    assert chat_format(name, tokenizer).render(CHAT[:2]).ids == tokenizer.encode(TEXTS[name], special=True)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("messages", [CHAT, CHAT[:1], [SYSTEM, *CHAT], [SYSTEM, CHAT[0]]], ids=len)
def test_segments_and_template_give_the_same_ids(name, messages):
    tokenizer = chat_tokenizer(name)
    for prompt in (False, True):
        own = chat_format(name, tokenizer).render(messages, prompt, replies=True)
        assert own == twin(name).render(messages, prompt, replies=True)


@pytest.mark.parametrize("name", FORMATS)
def test_the_replies_are_what_the_assistant_wrote_and_its_end_token(name):
    tokenizer = chat_tokenizer(name)
    for chat in (chat_format(name, tokenizer), twin(name), without_generation(name)):
        rendered = chat.render(CHAT, replies=True)
        assert runs(tokenizer, rendered) == REPLIES[name]
        assert rendered.ids == chat.render(CHAT).ids


@pytest.mark.parametrize("name", FORMATS)
def test_a_prompt_is_the_beginning_of_what_was_trained(name):
    for chat in (chat_format(name, chat_tokenizer(name)), twin(name)):
        full = chat.render(CHAT, replies=True)
        prompt = chat.render(CHAT[:3], prompt=True).ids
        assert full.ids[: len(prompt)] == prompt
        assert full.reply[len(prompt) :].index(True) == 0


def test_a_template_that_hides_what_was_said_cannot_say_what_was_replied():
    tokenizer = chat_tokenizer("chatml")
    source = "{{ messages | length }}{% for m in messages %}{{ m.content | reverse }}<|im_end|>{% endfor %}"
    chat = ChatTemplate(tokenizer, JinjaTemplate(source, tokenizer))
    assert chat.render(CHAT).ids
    with pytest.raises(UsageError, match=r"does not say which tokens.*generation"):
        chat.render(CHAT, replies=True)


def test_a_template_that_rewrites_earlier_turns_says_what_was_replied():
    tokenizer = chat_tokenizer("chatml")
    source = "{{ messages | length }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
    rendered = ChatTemplate(tokenizer, JinjaTemplate(source, tokenizer)).render(CHAT, replies=True)
    assert runs(tokenizer, rendered) == REPLIES["chatml"]


@pytest.mark.parametrize("source", ["{{ bos_token }}<s>{{ messages[0].content }}", "<s><s>"])
def test_a_doubled_start_token_is_an_error(source):
    tokenizer = chat_tokenizer("mistral")
    chat = ChatTemplate(tokenizer, JinjaTemplate(source, tokenizer))
    with pytest.raises(ModelFileError, match="start token <s> is doubled"):
        chat.render(CHAT[:1])
    assert ChatTemplate(tokenizer, JinjaTemplate("<s>{{ messages[0].content }}", tokenizer)).render(CHAT[:1]).ids


@pytest.mark.parametrize("side", ["lstrip", "rstrip"])
def test_white_space_beside_a_stripping_control_token_is_dropped_as_the_engine_drops_it(side):
    tokenizer = with_added(chat_tokenizer("chatml"), **{side: True})
    source = "<|im_start|> \n {{ messages[0].content }} \n<|im_end|>\n x"
    chat = ChatTemplate(tokenizer, JinjaTemplate(source, tokenizer))
    text = "<|im_start|> \n What is 1 + 1? \n<|im_end|>\n x"
    assert chat.render(CHAT[:1]).ids == tokenizer.encode(text, special=True)


@pytest.mark.parametrize("name", ["gemma", "llama-2", "mistral", "zephyr"])
def test_a_blank_goes_only_before_the_whole_where_the_tokenizer_says_so(name):
    tokenizer = prepending_first(chat_tokenizer(name))
    for chat in (chat_format(name, tokenizer), twin(name, tokenizer)):
        assert chat.render(CHAT[:2]).ids == tokenizer.encode(TEXTS[name], special=True)


def test_the_reference_renders_the_same_ids(tmp_path):
    for name in FORMATS:
        tokenizer = chat_tokenizer(name)
        tokenizer.save(tmp_path / name)
        reference = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path / name)
        for messages in (CHAT, CHAT[:3]):
            theirs = reference.apply_chat_template(
                messages, chat_template=ChatFormat(name).jinja(), add_generation_prompt=len(messages) == 3,
                return_dict=True, return_assistant_tokens_mask=True,
            )  # fmt: skip
            ours = twin(name).render(messages, prompt=len(messages) == 3, replies=True)
            assert ours.ids == theirs["input_ids"]
            if name != "llama-2":  # the reference marks by first characters: a blank before the reply counts there
                assert ours.reply == [bool(mark) for mark in theirs["assistant_masks"]]


def test_tools_and_documents_reach_the_template():
    tokenizer = chat_tokenizer("chatml")
    source = "{% for tool in tools %}{{ tool.function.name }}{{ tool | tojson }}{% endfor %}{{ mood }}"
    chat = ChatTemplate(tokenizer, JinjaTemplate(source, tokenizer))
    tool = {"type": "function", "function": {"name": "the <cat>"}}
    text = tokenizer.decode(chat.render(CHAT[:1], tools=[tool], mood="é").ids)
    assert text == 'the <cat>{"type": "function", "function": {"name": "the <cat>"}}é'
    with pytest.raises(UsageError, match="chatml has no documents"):
        chat_format("chatml", tokenizer).render(CHAT, documents=[{"text": "a"}])


def test_a_folder_brings_its_template(tmp_path):
    tokenizer = chat_tokenizer("chatml")
    with pytest.raises(ModelFileError, match="no chat template"):
        load_chat_template(tmp_path, tokenizer)
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": "config"}))
    assert load_chat_template(tmp_path, tokenizer).form.source == "config"
    named = [{"name": "default", "template": "one"}, {"name": "tool_use", "template": "two"}]
    config.write_text(json.dumps({"chat_template": named}))
    assert load_chat_template(tmp_path, tokenizer, "tool_use").form.source == "two"
    (tmp_path / "chat_template.jinja").write_text("file")
    assert load_chat_template(tmp_path, tokenizer).form.source == "file"
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_chat_template(tmp_path, tokenizer)


BAD = {
    "no message": [],
    "no content": [{"role": "user"}],
    "half a character": [{"role": "user", "content": "\ud800"}],
    "not JSON": [{"role": "user", "content": b"bytes"}],
    "an image": [{"role": "user", "content": [{"type": "image", "url": "x"}]}],
    "two questions": [CHAT[0], CHAT[0]],
    "an answer first": [CHAT[1]],
    "a tool's answer": [CHAT[0], {"role": "tool", "content": "x"}],
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_conversation_is_named(bad):
    with pytest.raises(DataError):
        chat_format("gemma", chat_tokenizer("gemma")).render(BAD[bad])


def test_text_parts_are_joined_and_names_are_checked():
    chat = chat_format("chatml", chat_tokenizer("chatml"))
    parts = [{"type": "text", "text": "What is "}, {"type": "text", "text": "1 + 1?"}]
    assert chat.render([{"role": "user", "content": parts}]) == chat.render(CHAT[:1])
    with pytest.raises(UsageError, match=r"no chat format 'x'.*chatml"):
        chat_format("x", chat_tokenizer("chatml"))
    with pytest.raises(UsageError, match="no special token"):
        chat_format("gemma", chat_tokenizer("chatml")).render(CHAT[:1])
    assert set(CONTROLS) == set(FORMATS)
