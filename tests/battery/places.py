"""Single cases that no rule finds: what was found by hand once, so that it stays mended."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from battery.case import Case

Change = Callable[[Path], None]
TRAIN = ["train", "recipe.yaml"]
SECTIONS = (
    "model", "model.config", "tokenizer", "data", "data.split", "data.mixture", "batches", "training",
    "training.optimizer", "training.optimizer.betas", "training.schedule", "expect", "evaluation",
)  # fmt: skip
# A machine with a GPU has the device that others lack.
NO_DEVICE = "--training.device=mps" if Path("/dev/nvidia0").exists() else "--training.device=cuda"


def cases() -> Iterator[Case]:
    """Yield recipes and specs as files, sources with strange names, and combinations of settings."""
    yield from _recipes()
    yield from _specs()
    yield from _sources()
    yield from _combinations()
    yield from _streams()


def _recipes() -> Iterator[Case]:
    """Yield recipe files that are no recipe, by their text."""
    texts = {
        "list key": "name: x\n[a, b]: 1\n",
        "mapping key": "? {a: b}\n: 1\n",
        "deep": "name: " + "[" * 5000 + "]" * 5000,
        "deep, not closed": "name: " + "{a: " * 5000,
        "huge integer": "name: x\nseed: " + "9" * 6000,
        "hexadecimal": "seed: 0x" + "f" * 6000,
        "alias of itself": "name: &a [*a]\n",
        "laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{c}: &{c} [{','.join([f'*{p}'] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
        "two documents": "name: a\n---\nname: b\n",
        "python object": "!!python/object/apply:os.system [ls]\n",
        "binary": "\x00\x01\x02",
        "only a word": "hello",
        "empty": "",
        "empty document": "---\n...\n",
        "tabs": "name:\tx\n\tseed: 1\n",
        "number keys": "1: 2\n",
        "null key": "null: 2\n",
        "key twice": "name: a\nname: b\n",
        "long": "name: x\n#" + "x" * 2_000_000,
        "kind of words and more": "kind: [word2vec]\n",
        "kind of nothing": "kind: word3vec\n",
    }
    for name, text in texts.items():
        for words in (TRAIN, ["plan", "recipe.yaml", "--data"], ["train", "recipe.yaml", "--print-config"])[:2]:
            yield Case(f"{words[0]} a recipe: {name}", words, "error", _text("recipe.yaml", text))
    strange = [None, True, 5, "x", [], {}, [{}], {"a": {"b": [None]}}]
    for key in SECTIONS:
        for value in strange:
            if (key, value) == ("model.config", {}):
                continue  # the family's default, a hundred million parameters
            wants = "any" if value in (None, [], {}) or key == "model.config" else "error"
            yield Case(f"a recipe with {key}: {value!r}", TRAIN, wants, _key(key, value))


def _specs() -> Iterator[Case]:
    """Yield spec files that are none."""
    changes: dict[str, Change] = {
        "missing": lambda world: None,
        "a folder": lambda world: (world / "spec.json").mkdir(),
        "no json": _text("spec.json", "{"),
        "binary": lambda world: (world / "spec.json").write_bytes(bytes(range(256))) and None,
        "deep": _text("spec.json", '{"kind":' * 100_000),
        "deep, closed": _text("spec.json", "[" * 900 + "]" * 900),
        "a loop": lambda world: (world / "spec.json").symlink_to("spec.json"),
        "a list": _text("spec.json", "[]"),
        "no kind": _text("spec.json", "{}"),
        "a strange kind": _text("spec.json", '{"kind": "os.system"}'),
        "a part": _text("spec.json", '{"kind": "nn.norms.LayerNorm"}'),
    }
    for field, value in (("width", "8"), ("width", -8), ("width", 0), ("width", 1e9), ("width", 2**40), ("context", 0),
                         ("context", None), ("width", True), ("embed", 5), ("head", []), ("stack", {}),
                         ("stack.blocks", []), ("stack.blocks", None), ("stack.blocks", [1])):  # fmt: skip
        changes[f"{field} {value!r}"] = _spec(field, value)
    for name, change in changes.items():
        yield Case(f"a spec: {name}", [*TRAIN, "--model={spec: spec.json}"], "error", change)


def _sources() -> Iterator[Case]:
    """Yield texts whose names or neighbours are strange."""
    folder = [*TRAIN, "--data.train=folder"]
    yield Case("a name that is not UTF-8 in a folder", folder, "ok", _named(b"folder/\xff\xfe.txt"))
    prepare = ["data", "prepare", "folder", "--tokenizer=tokenizer", "-o", "new"]
    yield Case("a name that is not UTF-8, prepared", prepare, "any", _named(b"folder/\xff\xfe.txt"))
    yield Case("a name with a line end in a folder", folder, "ok", _named(b"folder/a\nb.txt"))
    yield Case("a folder of links to nothing", folder, "ok", lambda world: (world / "folder/x.txt").symlink_to("no"))
    yield Case("a folder that holds itself", folder, "ok", lambda world: (world / "folder/x").symlink_to("."))
    for verb in (["data", "show"], ["data", "clean", "--exact", "-o", "new"], ["tokenizer", "train", "-o", "new"]):
        words = [*verb[:2], "\udcff\udcfe.txt", *verb[2:]]
        yield Case(f"{' '.join(verb[:2])} a name that is not UTF-8", words, "ok", _named(b"\xff\xfe.txt"))


def _combinations() -> Iterator[Case]:
    """Yield settings that are right alone and not together."""
    no_validation = "--data={train: text.txt}"
    together = {
        "warm-up beyond the steps": ["--training.schedule={kind: constant, warmup: 3}"],
        "decay beyond the steps": ["--training.schedule={kind: wsd, decay: 3}"],
        "warm-up and decay together": ["--training.schedule={kind: wsd, warmup: 2, decay: 1}"],
        "noam's own warm-up": ["--training.schedule={kind: noam, width: 8}"],
        "a vocabulary that the text cannot give": ["--tokenizer={kind: byte_bpe, vocabulary: 5000}"],
        "characters that the text cannot give": ["--tokenizer.vocabulary=500"],
        "a split that holds nothing back": ["--data.split={every: 1000}"],
        "a metric that is none": ["--expect.metric=val/accuracy"],
        "a metric of no validation": [no_validation],
        "a device that is not there": [NO_DEVICE],
        "a head of no width": [
            "--model={family: llama, config: {hidden_size: 8, num_attention_heads: 2, head_dim: 0}}"
        ],
        "no blocks": ["--model.config.n_layer=0"],
        "a billion blocks": ["--model.config.n_layer=1000000000"],
        "a thousand blocks of a huge width": ["--model.config={n_layer: 1000, n_embd: 65536, n_head: 1}"],
        "dropout of 2": ["--model.config.attn_pdrop=2"],
        "dropout of -1": ["--model.config.resid_pdrop=-1"],
        "one beta": ["--training.optimizer.betas=[0.9]"],
        "three betas": ["--training.optimizer.betas=[0.9, 0.9, 0.9]"],
        "a key in a number": ["--training.steps.more=1"],
        "a context below the batches": ["--batches.length=64"],
    }
    for name, words in together.items():
        yield Case(name, [*TRAIN, *words], "error")
    for words in (["generate", "llama", "a", "--num-beams=0"], ["generate", "llama", "a", "--num-beams=-1"],
                  ["generate", "llama", "a", "--max-new-tokens=1.5"], ["data", "show", "rows.jsonl", "--examples=-1"],
                  ["generate", "llama", "a", "--seed=11805916207174113034"],
                  ["lab", "bottleneck", "--seeds=1" + "0" * 30],
                  ["evaluate", "llama", "perplexity", "--file=text.txt", "--batch-size=0"],
                  ["compare", "--text=text.txt", "--models=ngram", "--minutes=nan"],
                  ["compare", "--text=text.txt", "--models=ngram", "--minutes=inf"],
                  ["tokenizer", "train", "text.txt", "--output=new", "--vocabulary=100000"]):  # fmt: skip
        yield Case(" ".join(words)[:90], words, "error")


def _streams() -> Iterator[Case]:
    """Yield what comes through standard input and the environment."""
    chat = ["chat", "llama", "--template=plain.jinja", "--max-new-tokens=2"]
    yield Case("chat with bytes that are no text", chat, "error", stdin="binary")
    yield Case("translate bytes that are no text", ["translate", "rnnsearch", "-"], "error", stdin="binary")
    yield Case("chat with nothing", chat, "ok", stdin="empty")
    yield Case("translate nothing", ["translate", "rnnsearch", "-"], "ok", stdin="empty")
    for line in (
        "/save text.txt/below",
        "/save /proc/x",
        "/save",
        "/what",
        f"/save {'x' * 300}",
        "/save loop",
        "/save folder",
    ):
        yield Case(f"chat: {line[:30]}", chat, "error", _text("stdin", f"hello\n{line}\n"), stdin="stdin")
    for name, value in (("ORRERY_TRAINING__STEPS", "x"), ("ORRERY_TRAINING__STEPS", "true"), ("ORRERY_SEED", "1.5"),
                        ("ORRERY_MODEL__", "1"), ("ORRERY___", "1"), ("ORRERY_TRAINING__", "{[a]: 1}"),
                        ("ORRERY_TRAIN_OUTPUT", "text.txt"), ("ORRERY_TRAIN_RESUME", "perhaps")):  # fmt: skip
        yield Case(f"{name}={value}", TRAIN, "error", environment={name: value})
    generate = ["generate", "llama", "the cat"]
    for name, value in (("TOP_K", "nan"), ("SEED", "-1"), ("MAX_NEW_TOKENS", "1.5"), ("DEVICE", ""), ("STOP", "")):
        wants = "any" if name in ("STOP", "DEVICE") else "error"
        yield Case(f"ORRERY_GENERATE_{name}={value}", generate, wants, environment={f"ORRERY_GENERATE_{name}": value})


def _text(name: str, text: str) -> Change:
    return lambda world: (world / name).write_text(text) and None


def _named(name: bytes) -> Change:
    return lambda world: Path(os.fsdecode(os.fsencode(world) + b"/" + name)).write_text("the cat sat\n" * 20) and None


def _key(key: str, value: Any) -> Change:
    """Return what sets a key of the recipe's file."""

    def change(world: Path) -> None:
        path = world / "recipe.yaml"
        recipe = inner = yaml.safe_load(path.read_text())
        *above, last = key.split(".")
        for name in above:
            inner = inner.setdefault(name, {})
        inner[last] = value
        path.write_text(yaml.safe_dump(recipe))

    return change


def _spec(field: str, value: Any) -> Change:
    """Return what writes a tiny spec with one field set again."""

    def change(world: Path) -> None:
        from orrery.families import load_family
        from orrery.nn.spec import to_json

        family = load_family("gpt2")
        tree = inner = to_json(family.spec(family.TINY))
        *above, last = field.split(".")
        for name in above:
            inner = inner[name]
        inner[last] = value
        (world / "spec.json").write_text(json.dumps(tree))

    return change
