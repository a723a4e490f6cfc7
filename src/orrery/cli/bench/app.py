"""``orrery bench``: this machine's limits, and how near to them a model writes."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from orrery.cli.numbers import COUNT, COUNT_EACH, COUNT_OR_NONE, ONE_OR_MORE
from orrery.cli.places import MODEL_IF_PATH
from orrery.cli.tables import print_table

app = App(name="bench", help="Measure this machine's limits, and the speed of a model beside them and beside peers.")
JsonFile = Annotated[Path | None, Parameter(name="--json")]
Threads = Annotated[int | None, COUNT]


@app.default
def limits(*, threads: Threads = None, json: JsonFile = None, overwrite: bool = False) -> None:
    """Measure how fast this machine reads memory and multiplies matrices, in about ten seconds.

    Parameters
    ----------
    threads
        Of torch; where not given, as many as it takes by itself.
    json
        File for the numbers.
    overwrite
        Replace the file.
    """
    from orrery.studies.bench.machine import measure_machine, rows_of

    target = _output("json", json, overwrite)
    _take_threads(threads)
    machine = measure_machine(_say)
    print_table(("what", "measured", "bounds"), rows_of(machine))
    _tell(machine.notes())
    _write(target, machine.state())


@app.command
def generate(
    model: Annotated[str, MODEL_IF_PATH],
    /,
    *,
    dtype: Literal["float32", "bfloat16"] = "float32",
    batch: Annotated[tuple[int, ...], COUNT_EACH] = (1, 8, 32),
    prompt: Annotated[int, COUNT] = 32,
    new: Annotated[int, COUNT] = 64,
    prefill: Annotated[int, COUNT_OR_NONE] = 512,
    peer: Annotated[tuple[str, ...], ONE_OR_MORE] = (),
    type: Annotated[
        tuple[Literal["f32", "bf16", "q8_0", "q4_0"], ...],
        ONE_OR_MORE,
        Parameter(name="--type"),
    ] = (),
    rounds: Annotated[int, COUNT] = 5,
    threads: Threads = None,
    json: JsonFile = None,
    page: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Measure how fast a model reads prompts and writes, beside the memory's limit and beside peers.

    Everybody gets the same weights, prompts and threads, and writes in turn; ratios are medians over the rounds. Tokens
    are chosen greedily, and compared in float32.

    Parameters
    ----------
    model
        A Hugging Face folder, a GGUF file, or a shape with random weights: gpt2-124m, gpt2-355m, llama-430m, gpt2-tiny.
    dtype
        Of the weights; matrices in the blocks of a GGUF file stay so.
    batch
        Rows written at once, one case each.
    prompt
        Tokens of each prompt.
    new
        Tokens that each row gets.
    prefill
        Tokens of a prompt that is only read, one more case; 0 leaves it out.
    peer
        transformers, llama.cpp; each needs its package.
    type
        How llama.cpp stores matrices: f32, bf16, q8_0 or q4_0, one peer each; where not given, as --dtype, or
        as the GGUF file.
    rounds
        How many are counted, after one that is not.
    threads
        Of everybody; where not given, as many as torch takes by itself.
    json
        File for all numbers.
    page
        HTML file for the table and the figures.
    overwrite
        Replace these files.
    """
    from orrery.studies.bench.rounds import Case
    from orrery.studies.bench.shapes import check_model
    from orrery.studies.bench.subjects import check_peers

    check_model(model)
    check_peers(peer)
    numbers, drawn = _output("json", json, overwrite), _output("html", page, overwrite)
    _take_threads(threads)
    from orrery.reports.making import made
    from orrery.studies.bench import report
    from orrery.studies.bench.generating import bench_generate
    from orrery.studies.bench.machine import measure_machine

    cases = [Case(rows, prompt, new) for rows in batch] + ([Case(1, prefill, 1)] if prefill else [])
    results = bench_generate(model, dtype, cases, peer, type, rounds, measure_machine, _say)
    print_table(report.COLUMNS, report.rows(results))
    _tell(report.notes(results))
    _write(numbers, results.state())
    if drawn is not None:
        with drawn.aside() as fresh:
            fresh.write_text(report.page(results, made()), encoding="utf-8")


def _output(kind: str, path: Path | None, overwrite: bool) -> Any:
    """Return where a file will go, refused before anything is measured."""
    from orrery.checkpoints.outputs import OutputFile

    return None if path is None else OutputFile.shown(kind, path, overwrite=overwrite)


def _write(target: Any, content: dict[str, Any]) -> None:
    from orrery.studies.kept import as_json

    if target is not None:
        with target.aside() as fresh:
            fresh.write_text(as_json(content), encoding="utf-8")


def _take_threads(threads: int | None) -> None:
    import torch

    if threads is not None:
        torch.set_num_threads(threads)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _tell(notes: list[str]) -> None:
    for note in notes:
        print(note)
