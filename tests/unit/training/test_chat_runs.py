"""A run on conversations: room for control tokens, the template beside the model, resumed to the same bytes."""

import json
import re

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from orrery.cli.program import run
from orrery.errors import UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.save import save_model
from orrery.language_model.load import load
from orrery.recipes.read import as_yaml, check_recipe
from orrery.runs.assemble import assemble
from orrery.runs.execute import make_parts
from orrery.runs.final import writer
from orrery.text.chat.formats import ChatFormat
from tiny_models import CONFIGS, TOKENIZER, saved, tiny

CHATS = [
    {"messages": [{"role": "user", "content": f"the cat {n}"}, {"role": "assistant", "content": "on the log"}]}
    for n in range(20)
]


@pytest.fixture
def base(tmp_path):
    return saved(tmp_path / "base", "llama")


def recipe(tmp_path, model, **more):
    file = tmp_path / "chats.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in CHATS))
    values = {
        "name": "chat",
        "model": model,
        "data": {"kind": "conversations", "train": str(file), "split": {"every": 5}, **more.pop("data", {})},
        "objective": "sft",
        "batches": {"length": 48, "size": 4, **more.pop("batches", {})},
        "training": {"steps": 4, "precision": "float32", "optimizer": {"rate": 0.01}, "schedule": {"kind": "constant"}},
        "checkpoints": {"every": 2},
        **more,
    }
    return check_recipe(values, "a test")


def written(tmp_path, settings, name="run", *flags):
    path = tmp_path / "recipe.yaml"
    path.write_text(as_yaml(settings))
    assert run(["train", str(path), "--output", str(tmp_path / name), *flags]) == 0
    return tmp_path / name


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_model_grows_rows_for_the_tokens_that_its_tokenizer_lacks(tmp_path, family):
    folder = saved(tmp_path / "base", family)
    old = read(folder)
    assembly = assemble(recipe(tmp_path, {"from": str(folder)}))
    assert assembly.tokenizer.size == TOKENIZER.size + 2
    assert assembly.tokenizer.encode("the cat") == TOKENIZER.encode("the cat")
    assert any("lacked <|im_start|>, <|im_end|>" in note for note in assembly.parts.notes)
    ours, theirs = weights_of(assembly.parts.model), weights_of(old.model)
    grown = [name for name in theirs if ours[name].shape != theirs[name].shape]
    assert grown
    for name in grown:
        assert torch.equal(ours[name][: len(theirs[name])], theirs[name])
        assert torch.isfinite(ours[name]).all()
        assert not torch.equal(ours[name][-1], ours[name][-2]) or ours[name].ndim == 1
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs if name not in grown)
    ids = torch.tensor([TOKENIZER.encode("the cat sat on")])
    size = old.model.spec.vocabulary
    logits = assembly.parts.model.eval().logits(ids)[..., :size]
    assert torch.allclose(logits, old.model.logits(ids), atol=1e-5)


def test_new_rows_that_an_adapter_freezes_are_refused(tmp_path, base):
    with pytest.raises(UsageError, match=r"new control tokens have rows in embed\.token\.weight"):
        make_parts(recipe(tmp_path, {"from": str(base), "adapter": {"kind": "lora"}}))
    learn = [name for name in weights_of(read(base).model) if "vocabulary" in name or name == "embed.token.weight"]
    make_parts(recipe(tmp_path, {"from": str(base), "adapter": {"kind": "lora", "learn": learn}}))


def test_a_tokenizer_trained_for_chats_leaves_nothing_to_grow(tmp_path, base):
    values = {"kind": "byte_bpe", "vocabulary": 264, "chat": "chatml"}
    config = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = {"family": "llama", "config": {**config, "num_key_value_heads": 2, "max_position_embeddings": 128}}
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and the dog on the log\n" * 20)
    first = {"name": "base", "model": model, "tokenizer": values, "data": {"train": str(text)}}
    first |= {"batches": {"length": 16, "size": 2}, "training": {"steps": 1, "optimizer": {"rate": 0.01}}}
    folder = written(tmp_path, check_recipe(first, "a test"), "pre")
    assert not (folder / "final" / "chat_template.jinja").exists()
    tuned = assemble(recipe(tmp_path, {"from": str(folder)}, batches={"length": 128}))
    assert tuned.tokenizer.size == 264
    assert tuned.spec.vocabulary == 264


def test_the_template_lies_beside_the_model_and_its_checkpoints(tmp_path, base, capsys):
    folder = written(tmp_path, recipe(tmp_path, {"from": str(base)}))
    assert f"orrery chat {folder} talks with the model" in capsys.readouterr().err
    source = (folder / "final" / "chat_template.jinja").read_text()
    end = read(folder).tokenizer.special("<|im_end|>")
    for place in (folder, folder / "checkpoints" / "step-000004"):
        lm = load(place, device="cpu", say=lambda line: None)
        assert lm.chat_template().end == {end}
    assert json.loads((folder / "final" / "generation_config.json").read_text())["eos_token_id"][-1] == end
    theirs = AutoTokenizer.from_pretrained(folder / "final")
    assert theirs.chat_template == source
    messages = CHATS[0]["messages"]
    asked = theirs.apply_chat_template(messages, tokenize=True, return_dict=False)
    assert asked == lm.chat_ids(messages).ids
    model = AutoModelForCausalLM.from_pretrained(folder / "final")
    assert model.generation_config.eos_token_id[-1] == end
    ids = torch.tensor([asked])
    assert torch.allclose(model(ids).logits, load(folder, say=lambda line: None).logits(ids), atol=1e-5)


@pytest.mark.parametrize(("known", "first"), [(5, [5]), ([5, 7], [5, 7]), (None, [TOKENIZER.special("end")])])
def test_what_ended_the_answers_of_the_base_still_does(tmp_path, known, first):
    said = {"temperature": 0.5} | ({} if known is None else {"eos_token_id": known})
    model, folder = tiny("llama"), tmp_path / "base"
    save_model(folder, model, "llama", CONFIGS["llama"], TOKENIZER, generation=said)
    settings = recipe(tmp_path, {"from": str(folder)})
    assembly = assemble(settings)
    writer(settings, assembly)(assembly.parts.model, tmp_path / "final")
    written = json.loads((tmp_path / "final" / "generation_config.json").read_text())
    assert written["eos_token_id"] == [*first, assembly.tokenizer.special("<|im_end|>")]
    assert written["temperature"] == 0.5


@pytest.mark.parametrize("kind", ["padded", "packed"])
def test_stopped_and_resumed_is_the_uninterrupted_run(tmp_path, base, kind):
    settings = recipe(tmp_path, {"from": str(base)}, batches={"kind": kind})
    whole = written(tmp_path, settings, "whole")
    written(tmp_path, settings, "parts", "--training.steps", "2")
    parts = written(tmp_path, settings, "parts", "--resume")
    assert (whole / "final/model.safetensors").read_bytes() == (parts / "final/model.safetensors").read_bytes()


def test_another_template_is_not_resumed_with(tmp_path, capsys):
    base = saved(tmp_path / "base", "llama", max_position_embeddings=128)
    form = tmp_path / "mine.jinja"
    form.write_text(ChatFormat("chatml").jinja() + "\n")
    settings = recipe(tmp_path, {"from": str(base)}, data={"template": str(form)}, batches={"length": 128})
    written(tmp_path, settings, "run", "--training.steps", "2")
    # Its tokens are not in the tokenizer, and which they are is known of Orrery's own formats alone.
    assert "no control token ends a reply in this chat template" in capsys.readouterr().err
    form.write_text(ChatFormat("chatml").jinja() + "\n\n")
    assert run(["train", str(tmp_path / "recipe.yaml"), "--output", str(tmp_path / "run"), "--resume"]) == 3
    assert "the chat template is not the one this run was started with" in capsys.readouterr().err


def test_the_verb_trains_scores_and_says_how_answers_end(tmp_path, base, capsys):
    file = tmp_path / "alpaca.jsonl"
    rows = [{"instruction": f"the cat {n}", "input": "", "output": "on the log"} for n in range(20)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--training.steps", "4", "--training.precision", "float32", "--batches.size", "4"]
    out = tmp_path / "assistant"
    assert run(["sft", str(base), "--train", str(file), "--output", str(out), *flags]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"\d conversations held back: perplexity", shown)
    scores = {each["name"] for each in json.loads((out / "scores.json").read_text())["scores"]}
    assert scores == {"perplexity", "token-accuracy", "ends", "clean"}
    assert "template:chatml" in (out / "scores.json").read_text()
    assert (out / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["{base}"], 2, "give --train FILE, or a recipe"),
        (["{base}", "--train", "nowhere.jsonl"], 3, "no such file"),
        (["nowhere", "--train", "{chats}"], 4, "does not exist"),
        (["{base}", "--train", "{chats}", "--data.template", "chatmel"], 2, "neither a chat format nor a file"),
        (["{base}", "--train", "{chats}", "--data.shape", "hh"], 3, "no conversation of the shape hh"),
        (["{recipe}"], 2, "names no task"),
    ],
)
def test_what_the_verb_refuses(tmp_path, base, words, code, told, capsys):
    (tmp_path / "recipe.yaml").write_text(as_yaml(recipe(tmp_path, {"from": str(base)})))
    places = {"base": base, "chats": tmp_path / "chats.jsonl", "recipe": tmp_path / "recipe.yaml"}
    assert run(["sft", *(word.format(**places) for word in words), "--output", str(tmp_path / "out")]) == code
    shown = capsys.readouterr().err
    assert told in shown
    assert "hint:" in shown
