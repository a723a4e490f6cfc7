"""Runs, models, tokenizers and specs with one file or key spoilt, each under every verb that reads it."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from battery import values
from battery.case import Case

Change = Callable[[Path], None]


def _write(content: bytes) -> Change:
    return lambda path: path.write_bytes(content) and None


def _folder(path: Path) -> None:
    _gone(path)
    path.mkdir()
    (path / "something").write_text("mine")


def _gone(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def _file(path: Path) -> None:
    _gone(path)
    path.write_text("a file")


def _loop(path: Path) -> None:
    _gone(path)
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    _gone(path)
    path.symlink_to("nowhere")


def _cut(path: Path) -> None:
    path.touch()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


CHANGES: dict[str, Change] = {
    "gone": _gone,
    "empty": _write(b""),
    "binary": _write(bytes(range(256))),
    "no-json": _write(b"{"),
    "other-json": _write(b'[1, {"a": null}]\n{"step": "x"}\n{"b": 1}\n'),
    "number": _write(b"9" * 5000 + b"\n"),
    "deep": _write(b"[" * 100_000),
    "nan": _write(b'{"step": NaN}\n'),
    "a-folder": _folder,
    "a-loop": _loop,
    "dangling": _dangling,
    "cut": _cut,
}
RUN_FILES = (
    "metrics.jsonl", "config.yaml", "run.json", "log.txt", "lock", "tokenizer.json", "tokenizer_config.json",
    "checkpoints/latest", "checkpoints/best", "checkpoints/step-000002/state.json",
    "checkpoints/step-000002/manifest.json", "checkpoints/step-000002/model.safetensors",
    "checkpoints/step-000002/optimizer.safetensors", "checkpoints/step-000002/spec.json",
)  # fmt: skip
RUN_FOLDERS = ("checkpoints", "checkpoints/step-000002", "final")
MODEL_FILES = (
    "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json",
    "chat_template.jinja",
)  # fmt: skip
READERS = (
    ["generate", "llama", "the cat", "--max-new-tokens=2"],
    ["score", "llama", "the cat"],
    ["show", "./llama"],
    ["export", "llama", "gguf", "new.gguf"],
    ["tokenizer", "show", "llama", "the cat"],
    ["parity", "llama", "--against=llama"],
    ["chat", "llama", "--max-new-tokens=2"],
    ["neighbours", "llama", "cat"],
    ["import", "llama", "new"],
    ["evaluate", "llama", "perplexity", "--file=text.txt"],
    ["tokenizer", "compare", "the cat", "--tokenizer=llama"],
)
STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**31, 2**63, 10**30, "", "x", "\x00", [], [1], [None], {}, {"a": 1}, 1e308,
)  # fmt: skip


def _at(place: str, change: Change) -> Change:
    return lambda world: change(world / place)


def of_runs(count: int = 3) -> Iterator[Case]:
    """Yield spoilt runs that are resumed; some can be, so that only an unexpected exception is a fault."""
    spread = values.Spread(count)
    resume = ["train", "recipe.yaml", "--output=run", "--resume", "--training.steps=3"]
    for name in RUN_FILES:
        for kind in spread.some(CHANGES):
            yield Case(f"resume: {name} {kind}", resume, "any", _at(f"run/{name}", CHANGES[kind]), writes=("run",))
    for name in RUN_FOLDERS:
        for kind, change in (("a-file", _file), ("a-loop", _loop), ("dangling", _dangling), ("gone", _gone)):
            yield Case(f"resume: {name} {kind}", resume, "any", _at(f"run/{name}", change), writes=("run",))
    for name in (*RUN_FILES[5:], *RUN_FOLDERS, "final/config.json", "final/model.safetensors"):
        for kind in spread.some(CHANGES):
            words = ["generate", "run", "The", "--max-new-tokens=2"]
            yield Case(f"generate from a run: {name} {kind}", words, "any", _at(f"run/{name}", _kind(kind, name)))
    for name in ("final", "final/vectors.bin", "config.yaml"):
        for kind in spread.some(CHANGES):
            words = ["neighbours", "vectors", "cat", "--n=2"]
            yield Case(f"neighbours of a run: {name} {kind}", words, "any", _at(f"vectors/{name}", _kind(kind, name)))
    for name in ("index.json", "train-00000.tokens"):
        for kind in spread.some(CHANGES):
            yield Case(f"verify shards: {name} {kind}", ["data", "verify", "shards"], "error",
                       _at(f"shards/{name}", _kind(kind, name)))  # fmt: skip


def _kind(kind: str, name: str) -> Change:
    """Return a change; what writes a file into the place of a folder removes the folder first."""

    def change(path: Path) -> None:
        if path.is_dir() and kind not in ("gone", "a-folder", "a-loop", "dangling"):
            _gone(path)
            path.write_bytes(b"x")
        CHANGES[kind](path)

    return change


def of_models(count: int = 3) -> Iterator[Case]:
    """Yield spoilt files of a model under the verbs that read it, one verb after the other."""
    spread, verbs = values.Spread(count), values.Spread(1)
    for name in MODEL_FILES:
        for kind in spread.some(CHANGES):
            (words,) = verbs.some(READERS)
            stdin = "stdin" if words[0] == "chat" else "/dev/null"
            yield Case(
                f"{' '.join(words[:2])}: {name} {kind}", words, "any", _at(f"llama/{name}", CHANGES[kind]), stdin=stdin
            )
    config_keys = (
        "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
        "max_position_embeddings", "eos_token_id", "rope_theta", "hidden_act", "tie_word_embeddings", "model_type",
        "rms_norm_eps", "attention_dropout", "architectures", "rope_scaling", "torch_dtype",
    )  # fmt: skip
    for key in config_keys:
        for value in spread.some(STRANGE):
            (words,) = verbs.some(READERS[:5])
            yield Case(
                f"{words[0]}: config.json {key} = {str(value)[:30]!r}",
                words,
                "any",
                _set("llama/config.json", key, value),
            )
    for key in ("eos_token_id", "max_new_tokens", "temperature", "top_k", "num_beams", "do_sample"):
        for value in spread.some(STRANGE):
            yield Case(f"generate: generation_config.json {key} = {str(value)[:30]!r}", READERS[0], "any",
                       _set("llama/generation_config.json", key, value))  # fmt: skip


def _set(place: str, key: str, value: Any) -> Change:
    def change(world: Path) -> None:
        path = world / place
        content = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**content, key: value}))

    return change
