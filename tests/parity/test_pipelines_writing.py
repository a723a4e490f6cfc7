"""Tasks that write: encoder-decoders as transformers 4.57 wrote, decoders as transformers 5 does."""

import pytest
import transformers

import orrery
from orrery.errors import UsageError
from tests.parity.pipelines import TEXTS, edit_config, generated, pair, same
from tests.parity.recorded_pipelines import cases, fingerprint, made, recorded

WRITERS = [case for case in cases() if case.task != "question-answering"]


@pytest.mark.parametrize("case", WRITERS, ids=lambda case: case.kind)
def test_what_is_written_equals_what_was_recorded(case, tmp_path):
    expected = recorded(case)
    made(case, tmp_path)
    assert fingerprint(tmp_path) == expected["model"], "other weights: record the answers again"
    ours = orrery.pipeline(case.task, tmp_path, device="cpu")
    for number, ((given, settings), answer) in enumerate(zip(case.calls, expected["answers"], strict=True)):
        same(ours(given, batch_size=1 if number < 3 else 4, **settings), answer, where=str(settings))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_continuations(kind, tmp_path):
    theirs, ours = pair(tmp_path, kind, "AutoModelForCausalLM", "text-generation", context=160)
    for settings in (
        {"do_sample": False, "max_new_tokens": 9},
        {"do_sample": False, "max_new_tokens": 5, "return_full_text": False},
        {"do_sample": False, "num_beams": 3, "max_new_tokens": 7, "num_return_sequences": 2},
        {"do_sample": False, "num_beams": 4, "max_new_tokens": 20, "early_stopping": True, "length_penalty": 0.0},
        {"do_sample": False, "min_new_tokens": 6, "max_new_tokens": 9, "no_repeat_ngram_size": 2},
        {"do_sample": False, "max_new_tokens": 4, "repetition_penalty": 1.7},
    ):
        expected = theirs(TEXTS, **settings)
        for size in (1, 4):
            same(ours(TEXTS, batch_size=size, **settings), expected, where=str(settings))
        same(ours(TEXTS[1], **settings), theirs(TEXTS[1], **settings))
        same(list(ours(generated(TEXTS), **settings)), expected)
    same(ours(TEXTS[0], do_sample=False, max_length=40), theirs(TEXTS[0], do_sample=False, max_length=40))
    same(ours("", do_sample=False, max_new_tokens=4), theirs("", do_sample=False, max_new_tokens=4))
    ids = {"do_sample": False, "max_new_tokens": 4, "return_tensors": True}
    same(ours(TEXTS[0], **ids), theirs(TEXTS[0], **ids))
    hole = {"do_sample": False, "max_new_tokens": 100, "handle_long_generation": "hole"}
    same(ours(" ".join(TEXTS), **hole), theirs(" ".join(TEXTS), **hole))


def test_draws_depend_on_the_seed_and_the_number_of_the_text_alone(tmp_path):
    _, ours = pair(tmp_path, "gpt2", "AutoModelForCausalLM", "text-generation", context=96)
    drawn = ours(TEXTS, max_new_tokens=6, num_return_sequences=2, seed=5)
    assert drawn == ours(TEXTS, max_new_tokens=6, num_return_sequences=2, seed=5, batch_size=4)
    assert drawn != ours(TEXTS, max_new_tokens=6, num_return_sequences=2, seed=6)
    assert len({one["generated_text"] for answers in drawn for one in answers}) == 12


def test_chats(tmp_path):
    template = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    template += "{% if add_generation_prompt %}assistant: {% endif %}"
    theirs, _ = pair(tmp_path, "llama", "AutoModelForCausalLM", "text-generation", context=160)
    (tmp_path / "chat_template.jinja").write_text(template)
    theirs = transformers.pipeline("text-generation", str(tmp_path), device="cpu")
    ours = orrery.pipeline("text-generation", tmp_path, device="cpu", do_sample=False, max_new_tokens=5)
    chat = [{"role": "user", "content": "Ada wrote"}]
    greedy = {"do_sample": False, "max_new_tokens": 5}
    same(ours(chat), theirs(chat, **greedy))
    same(ours([chat, chat]), theirs([chat, chat], **greedy))
    same(ours(chat, return_full_text=False), theirs(chat, return_full_text=False, **greedy))
    with pytest.raises(UsageError, match="assistant"):
        ours([*chat, {"role": "assistant", "content": "To"}])


def test_what_is_refused(tmp_path):
    _, ours = pair(tmp_path / "gpt2", "gpt2", "AutoModelForCausalLM", "text-generation", context=64)
    with pytest.raises(UsageError, match="longer than"):
        ours(" ".join(TEXTS))
    for settings in (
        {"max_new_tokens": 0},
        {"num_beams": 2, "do_sample": True},
        {"num_return_sequences": 2, "do_sample": False},
        {"num_beams": 2, "num_return_sequences": 3, "do_sample": False},
        {"max_tokens": 3},
        {"handle_long_generation": "hole", "max_new_tokens": 64},
    ):
        with pytest.raises(UsageError):
            ours(TEXTS[0], **settings)
    for task in ("summarization", "translation", "text2text-generation"):
        with pytest.raises(UsageError, match="needs an encoder-decoder"):
            orrery.pipeline(task, tmp_path / "gpt2")
    made(next(case for case in WRITERS if case.kind == "t5"), tmp_path / "t5")
    with pytest.raises(UsageError, match="needs a decoder"):
        orrery.pipeline("text-generation", tmp_path / "t5")
    edit_config(tmp_path / "t5", task_specific_params={"summarization": 3})
    with pytest.raises(Exception, match="task_specific_params"):
        orrery.pipeline("summarization", tmp_path / "t5")("Ada")
