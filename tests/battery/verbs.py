"""Every verb, from the program's own table: its flags, each with values by type, and its places, each spoilt."""

import inspect
import os
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from cyclopts import Parameter

from battery import values
from battery.case import Case
from orrery.cli import program
from orrery.cli.evaluate.app import tasks

BASES: dict[str, list[str]] = {
    "train": ["recipe.yaml"],
    "finetune": ["classification", "--from=classes", "--train=labelled.csv", "--val=labelled.csv", "--output=new",
                 "--training.steps=2"],
    "sft": ["llama", "--train=chats.jsonl", "--val=chats.jsonl", "--output=new", "--training.steps=2",
            "--data.long=cut"],
    "reward": ["llama", "--train=preferred.jsonl", "--val=preferred.jsonl", "--output=new", "--training.steps=2",
               "--data.long=cut"],
    "dpo": ["llama", "--train=preferred.jsonl", "--val=preferred.jsonl", "--output=new", "--training.steps=2",
            "--data.long=cut"],
    "ppo": ["llama", "--train=asked.csv", "--val=asked.csv", "--reward=exact", "--output=new",
            "--training.steps=2", "--batches.size=8", "--data.max_new_tokens=2"],
    "grpo": ["llama", "--train=asked.csv", "--val=asked.csv", "--reward=exact", "--output=new",
             "--training.steps=2", "--batches.size=8", "--data.max_new_tokens=2"],
    "distil": ["llama", "--prompts=asked.csv", "--output=new.jsonl", "--max-new-tokens=2"],
    "generate": ["llama", "the cat", "--max-new-tokens=2"],
    "see": ["llama", "the cat", "--output=new.html"],
    "patch": ["llama", "the cat sat", "the dog sat", "--answer=t", "--output=new.json"],
    "tree": ["llama", "the cat", "--max-new-tokens=2"],
    "chat": ["llama", "--template=plain.jinja", "--max-new-tokens=2"],
    "score": ["llama", "the cat"],
    "translate": ["rnnsearch", "the cat", "--max-new-tokens=2"],
    "classify": ["classes", "the cat"],
    "caption": ["captions", "picture.png", "--max-new-tokens=2"],
    "detect": ["boxes", "picture.png", "--threshold=0.1"],
    "segment": ["pixels", "picture.png"],
    "tag": ["tags", "the cat"],
    "answer": ["spans", "the cat", "--context=the cat sat on the mat"],
    "summarise": ["rnnsearch", "the cat", "--max-new-tokens=2"],
    "embed": ["llama", "the cat"],
    "rank": ["ranks", "the cat", "a cat sat", "the mat"],
    "cloze": ["llama", "the __ sat", "--candidates=cat,dog"],
    "label": ["labels", "cat"],
    "recommend": ["items", "--history=cat"],
    "evaluate translation": ["rnnsearch", "--source=source.txt", "--target=target.txt", "--max-new-tokens=2"],
    "evaluate alignment": ["rnnsearch", "--source=source.txt", "--target=target.txt"],
    "evaluate perplexity": ["llama", "--file=text.txt"],
    "evaluate word-vectors": ["vectors.txt"],
    "evaluate retrieval": ["llama", "found.jsonl"],
    "evaluate similarity": ["llama", "judged.jsonl"],
    "evaluate reranking": ["ranks", "ordered.jsonl"],
    "evaluate choices": ["llama", "choices.jsonl"],
    "evaluate hellaswag": ["llama", "swag.jsonl"],
    "evaluate mmlu": ["llama", "exam", "--shots=0"],
    "evaluate blimp": ["llama", "--file=pairs.jsonl"],
    "evaluate gsm8k": ["llama", "--file=sums.jsonl", "--shots=0", "--max-new-tokens=2"],
    "evaluate humaneval": ["llama", "--file=bodies.jsonl", "--max-new-tokens=2"],
    "evaluate mbpp": ["llama", "functions.jsonl", "--max-new-tokens=2"],
    "neighbours": ["vectors.txt", "cat", "--n=2"],
    "show": ["./llama"],
    "plan": ["recipe.yaml"],
    "export": ["llama", "gguf", "new.gguf"],
    "average": ["llama", "new", "--others=other"],
    "models": ["llama"],
    "quantise": ["llama", "new"],
    "import": ["llama", "new"],
    "parity": ["llama", "--against=llama"],
    "tokenizer show": ["tokenizer", "the cat"],
    "tokenizer compare": ["the cat", "--tokenizer=tokenizer"],
    "tokenizer chat": ["tokenizer", "talk.json", "--template=plain.jinja"],
    "tokenizer train": ["text.txt", "--output=new", "--vocabulary=270"],
    "data prepare": ["text.txt", "--tokenizer=tokenizer", "--output=new"],
    "data verify": ["shards"],
    "data clean": ["rows.jsonl", "--output=new.jsonl", "--exact"],
    "data show": ["rows.jsonl"],
    "data fetch": ["no-such-set"],
    "lab": ["bottleneck", "--quick", "--seeds=0"],
    "quiz": ["swap", "--answers"],
    "course": ["S0", "one-hot"],
    "verify": ["--family=no-such-family"],
    "info": [],
    "completion": ["bash"],
    "with": ["parts.py", "info"],
    "serve": ["no-such-model", "--port=0"],
    "bench generate": ["no-such-model"],
    "compare": ["--text=text.txt", "--models=ngram", "--steps=1", "--parameters=20000", "--tokenizer.vocabulary=280"],
    "ladder": [
        "recipe.yaml", "--ladder.sizes=[{n_embd: 8}, {n_embd: 12}, {n_embd: 16}, {n_embd: 24}]",
        "--ladder.seeds=[1, 2]", "--ladder.tokens_per_parameter=0.02", "--expect=null", "--output=new",
    ],
    "demo": [
        "--data.train=text.txt", "--data.split={tail: 0.2}", "--training={steps: 2, optimizer: {rate: 0.01}}",
        "--batches.length=8", "--model.config.hidden_size=8", "--model.config.intermediate_size=8",
        "--tokenizer.vocabulary=280",
    ],
}  # fmt: skip
"""A command line of each that works in the small world."""
SURE_TO_FAIL = {"data fetch", "verify", "evaluate word-vectors", "demo", "serve", "bench generate"}
"""These need data that is not there, a long time, or a model that has learnt something; a server never ends."""
OUTPUTS = {"output", "out", "json", "map", "report", "alignment", "picture"}
MAY_BE_ZERO = {"seed", "seeds", "skip-bad", "examples", "sentences", "length-penalty", "temperature", "min-p",
               "top-k", "near", "samples", "presence-penalty", "frequency-penalty", "diversity-penalty",
               "coverage-penalty", "penalty-alpha", "position", "port", "shots", "sweep"}  # fmt: skip
MAY_BE_NEGATIVE = {"position", "top-k", "presence-penalty", "frequency-penalty"}
OPEN_TEXTS = {"prompt", "text", "texts", "system", "stop", "words", "overrides", "settings", "name", "drop-matching",
              "other", "similarity", "analogy", "column", "concordance", "filters", "question", "context", "labels",
              "candidates", "bad-word", "regex", "clean", "corrupted", "answer", "wrong", "query",
              "documents", "history"}  # fmt: skip
"""Where any words may be right, or where a wrong one is only not found."""


def verbs() -> Iterator[tuple[str, Any]]:
    """Yield each verb with its function."""
    for name, verb in program.VERBS.items():
        application = _target(verb.target)
        if name == "evaluate":
            yield from ((f"evaluate {name}", _target(task.target)) for name, task in tasks().items() if task.of_a_model)
        elif inspect.isfunction(application):
            yield name, application
        else:
            for word in (word for word in application if not word.startswith("-")):
                yield f"{name} {word}", application[word].default_command


def _target(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def flags(function: Any) -> Iterator[tuple[str, bool, set[Any]]]:
    """Yield the name of each parameter, whether it is a flag, and what it takes."""
    hints = inspect.get_annotations(function, eval_str=True)
    for parameter in inspect.signature(function).parameters.values():
        kind = values.kinds(hints[parameter.name])
        shared = [one for one in kind if isinstance(one, type) and hasattr(one, "__dataclass_fields__")]
        if shared:
            inner = inspect.get_annotations(shared[0], eval_str=True)
            yield from ((_dashed(name), True, values.kinds(one)) for name, one in inner.items())
        else:
            name = {"named": "set", "count": "examples", "reader": "with", "everything": "all", "base": "from"}.get(
                parameter.name
            )
            yield name or _dashed(parameter.name), parameter.kind is parameter.KEYWORD_ONLY, kind


def bounded(function: Any, flag: str) -> bool:
    """Say whether a parameter, or the field of a group of them, has a converter of its own."""
    hints = inspect.get_annotations(function, eval_str=True)
    groups = [hint for hint in hints.values() if hasattr(hint, "__dataclass_fields__")]
    own = {name: hint for name, hint in hints.items() if hint not in groups}
    for named in (own, *(inspect.get_annotations(group, eval_str=True) for group in groups)):
        for name, hint in named.items():
            marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Parameter)]
            names = {_dashed(name), *(str(mark.name[0]).strip("-") for mark in marks if mark.name)}
            if flag in names:
                return any(mark.converter is not None for mark in marks)
    return False


def _dashed(name: str) -> str:
    return name.strip("_").replace("_", "-")


def line(verb: str) -> list[str]:
    """Return a command line of a verb that works."""
    first, _, second = verb.partition(" ")
    model, rest = (BASES[verb][:1], BASES[verb][1:]) if first == "evaluate" else ([], BASES[verb])
    return [first, *model, *([second] if second else []), *rest]


def with_flag(words: list[str], flag: str, value: str) -> list[str]:
    """Return a command line with a flag set again."""
    return [*(word for word in words if not word.startswith(f"--{flag}=")), f"--{flag}={value}"]


def with_position(words: list[str], verb: str, index: int, value: str) -> list[str]:
    """Return a command line with another word at a place."""
    first = len(verb.split()) if not verb.startswith("evaluate") else 1
    place = first + index
    return [*words[:place], value, *words[place + 1 :]]


def of_flags(count: int = 3) -> Iterator[Case]:
    """Yield every flag of every verb with so many of the values that are none of its type, or out of range."""
    spread: dict[str, values.Spread] = {}
    for verb, function in verbs():
        words, base = line(verb), "error" if verb in SURE_TO_FAIL else "ok"
        stdin = "stdin" if verb == "chat" else "/dev/null"
        if verb != "lab":
            yield Case(f"{verb}: as it is", words, base, stdin=stdin, writes=_written(verb))
        for flag, named, kind in flags(function):
            if not named:
                continue
            given, group = _values(flag, kind)
            for value, usual in spread.setdefault(group, values.Spread(count)).some(given):
                wants = "any" if (verb, flag, value) in FINE else usual
                yield Case(f"{verb} --{flag}={values.short(value)}", with_flag(words, flag, value), wants, stdin=stdin,
                           before=pipe if value == "pipe" else None)  # fmt: skip
            yield Case(f"{verb} --{flag} without a value", [*words, f"--{flag}"],
                       "any" if bool in kind else "error", stdin=stdin)  # fmt: skip


def _written(verb: str) -> tuple[str, ...]:
    return ("new", "runs") if verb not in SURE_TO_FAIL else ()


def _values(flag: str, kind: set[Any]) -> tuple[list[tuple[str, str]], str]:
    """Return values for a flag with what each must come to, and the name of their group."""
    if kind & {int, float} and not kind & {str, Path}:
        number = int if int in kind else float
        given = [(value, "error") for value in values.numbers(number)]
        given.append(("0", "any" if flag in MAY_BE_ZERO else "error"))
        given.append((values.LARGE, "any"))
        small = values.SMALL[1:] if number is int else values.NEGATIVE
        given += [(value, "any" if flag in MAY_BE_NEGATIVE else "error") for value in small]
        return given, number.__name__
    if "literal" in kind or bool in kind:
        return [(value, "error") for value in ("", "perhaps", "nan", "\udcff", "x" * 5000)], "choice"
    if Path in kind and flag in OUTPUTS:
        return [(value, "error") for value in (*values.UNWRITABLE, "dangling")], "output"
    if Path in kind:
        return [(value, "error") for value in (*values.MISSING_FILES, *values.WRONG_FILES)], "input"
    return [(value, "any" if flag in OPEN_TEXTS else "error") for value in values.WORDS], "word"


def of_positions(count: int = 4) -> Iterator[Case]:
    """Yield every word of a command line that is looked up or written, with so many things that it cannot be."""
    spread = {name: values.Spread(count) for name in ("input", "output", "choice", "text")}
    for verb, function in verbs():
        words = line(verb)
        position = -1
        for name, named, kind in flags(function):
            if named:
                continue
            position += 1
            if position >= len(BASES[verb]) or BASES[verb][position][0] == "-":
                continue
            wrong, group = (*values.MISSING_FILES, *values.WRONG_FILES), "input"
            if name in OUTPUTS:
                wrong, group = values.UNWRITABLE, "output"
            if "literal" in kind:
                wrong, group = ("", "perhaps", "\udcff"), "choice"
            if name in OPEN_TEXTS:
                wrong, group = tuple(word for word in values.WORDS if word != "--"), "text"
            stdin = "stdin" if verb == "chat" else "/dev/null"
            for value in spread[group].some(wrong):
                wants = "any" if (verb, name, value) in FINE or name in OPEN_TEXTS else "error"
                case = with_position(words, verb, position, value)
                yield Case(
                    f"{verb} {name.upper()}={values.short(value)}",
                    case,
                    wants,
                    before=pipe if value == "pipe" else None,
                    stdin=stdin,
                )


FINE = {
    ("data clean", "source", "empty"),
    ("data show", "source", "empty"),
    ("tokenizer train", "source", "folder"),
    ("data prepare", "source", "folder"),
    ("data clean", "source", "folder"),
    ("data show", "source", "folder"),
    ("evaluate perplexity", "file", "folder"),
    ("quantise", "text", "folder"),
}
"""Where a folder with a text in it is read, and where an empty text is told as one."""


def pipe(world: Path) -> None:
    """Put a pipe into the world, through which one reader gets bytes that are no text."""
    os.mkfifo(world / "pipe")
    # A shell that leaves at once: nobody waits for the writer, which ends by itself.
    subprocess.run(["sh", "-c", "timeout 5 sh -c 'cat binary > pipe' 2>/dev/null >/dev/null &"], cwd=world, check=True)
