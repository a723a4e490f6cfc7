"""What each door makes of a setting that stands in ``schema/writing.py`` alone: a program of its own prints it."""

import contextlib
import inspect
import io
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

import orrery
from orrery.cli.program import run
from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.recipes.read import check_recipe
from orrery.serving.background import serving

sys.path.insert(0, str(Path(sys.argv[2]) / "docs"))
FOLDER, FEW = Path(sys.argv[1]), 3
RECIPE = {
    "name": "a", "model": {"family": "llama", "config": {}}, "tokenizer": {"file": "t.json"},
    "data": {"train": "t.txt"}, "training": {"steps": 1, "optimizer": {"rate": 0.1}},
    "batches": {"length": 8, "size": 2},
}  # fmt: skip


def python(value):
    return orrery.load(FOLDER, say=quiet).generate("the", max_new_tokens=FEW, liking=value)


def pipeline(value):
    pipe = orrery.pipeline("text-generation", orrery.load(FOLDER, say=quiet), max_new_tokens=FEW, do_sample=False)
    return pipe("the", liking=value, return_full_text=False)[0]["generated_text"]


def http(value):
    body = json.dumps({"prompt": "the", "max_tokens": FEW, "temperature": 0, "liking": value}).encode()
    with serving(orrery.load(FOLDER, say=quiet), "toy") as server:
        asked = urllib.request.Request(f"{server.url}/v1/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked) as response:
                return json.load(response)["choices"][0]["text"]
        except urllib.error.HTTPError as error:
            raise UsageError(json.load(error)["error"]["message"], "") from None


def recipe(value):
    """A recipe's key is written beside the model, where the next reader finds it."""
    said = check_recipe({**RECIPE, "generation": {"liking": value}}, "r").generation.said
    place = FOLDER / "generation_config.json"
    before = json.loads(place.read_text()) if place.exists() else None
    place.write_text(json.dumps({**(before or {}), **said}))
    try:
        return orrery.load(FOLDER, say=quiet).generate("the", max_new_tokens=FEW)
    finally:
        place.unlink() if before is None else place.write_text(json.dumps(before))


def flag(value):
    shown = io.StringIO()
    words = ["generate", str(FOLDER), "the", "--temperature", "0", "--max-new-tokens", str(FEW), "--liking", str(value)]
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()) as errors:
        if run(words) != 0:
            raise UsageError(errors.getvalue(), "")
    return shown.getvalue().rstrip("\n")


def quiet(line):
    pass


def told(door, value):
    try:
        return {"text": door(value)}
    except UsageError as error:
        return {"refused": f"{error.message}: {error.hint}"}


def table():
    from _tables import drawing

    return drawing()


if __name__ == "__main__":
    doors = {door.__name__: [told(door, 100.0), told(door, 101.0)] for door in (python, pipeline, http, recipe, flag)}
    seen = {"signature": list(inspect.signature(LanguageModel.generate).parameters), "table": table()}
    print(json.dumps({"doors": doors, **seen, "help": LanguageModel.generate.__doc__}))
