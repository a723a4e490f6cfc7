"""Tables of what the benchmarks recorded, made from ``benchmarks/*.json`` whenever the documentation is built."""

import ast
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def training(found: dict[str, Any]) -> str:
    """Return tokens a second of every contender, and the ratios."""
    speed = [(name, f"{value:,.0f}") for name, value in found["tokens_per_second"].items()]
    ratios = [(name, f"{value:.3g}") for name, value in found["ratios"].items()]
    return table(("contender", "tokens/s"), speed) + "\n" + table(("ratio", "value"), ratios)


def tokenizer_speed(found: dict[str, Any]) -> str:
    """Return seconds beside the library's."""
    rows = [
        (work, who, f"{one['seconds']:.2f}", f"{one['processor_seconds']:.2f}", f"{one['ratio']:.3f}")
        for work in ("train", "encode")
        for who, one in found[work].items()
    ]
    size = f"{found['bytes']:,} bytes, {found['vocabulary']:,} ids.\n\n"
    return size + table(("work", "by", "seconds", "processor seconds", "time beside the library's"), rows)


def word2vec(found: dict[str, Any]) -> str:
    """Return the mean over seeds of every way of training."""
    kinds = dict.fromkeys(row["kind"] for row in found["rows"])
    rows = []
    for kind in kinds:
        runs = [row for row in found["rows"] if row["kind"] == kind]
        keys = {"words_per_second": ",.0f", "megabytes": ".0f", "analogies": ".3f", "wordsim": ".3f"}
        rows.append(
            (kind, str(len(runs)), *(format(mean(run[key] for run in runs), form) for key, form in keys.items()))
        )
    settings = ", ".join(f"{name} {value}" for name, value in found["settings"].items())
    heads = ("by", "seeds", "words/s", "MB", "analogies", "WordSim-353")
    return f"Settings: {settings}. Means over the seeds.\n\n" + table(heads, rows)


def memory(found: dict[str, Any]) -> str:
    """Return resident memory at the first and the last mark of each family."""
    rows = [
        (
            row["family"],
            f"{row['steps']:,}",
            row["precision"],
            *(f"{row['marks'][place]['resident']:.0f} MB at step {row['marks'][place]['step']:,}" for place in (0, -1)),
            f"{row['growth']:+.1%}",
        )
        for row in found["rows"]
    ]
    return table(("family", "steps", "precision", "first", "last", "growth"), rows)


def sentencepiece_speed(found: dict[str, Any]) -> str:
    """Return speed of encoding and quality of training beside the library's."""
    encode = [
        (model, text, *(f"{one[key]:.2f}" for key in ("sentencepiece, MB/s", "orrery, MB/s", "plain, MB/s")))
        for model, texts in found["encode"].items()
        if model not in ("processors", "load")
        for text, one in texts.items()
    ]
    train = [
        (name, who, f"{one[who]['seconds']:.1f}", f"{one[who]['tokens a word']:.4f}", f"{one[who]['nats a word']:.3f}")
        for name, one in found["train"].items()
        if name != "load"
        for who in ("orrery", "sentencepiece")
    ]
    heads = ("model", "text", "sentencepiece, MB/s", "orrery, MB/s", "orrery without numba, MB/s")
    same = [one["equal ids"] for texts in found["encode"].values() if isinstance(texts, dict) for one in texts.values()]
    first = f"Machine: {found['machine']}. The ids were equal in {sum(same)} of {len(same)} rows.\n\n"
    first += table(heads, encode)
    return first + "\n" + table(("text", "by", "seconds", "tokens a word", "nats a word"), train)


def trace_memory(found: dict[str, Any]) -> str:
    """Return the memory and the time of a trace beside the plain forward."""
    what = f"{found['tokens']:,} tokens, {found['layers']} layers, {found['heads']} heads, width {found['width']}"
    rows = [
        ("plain forward", f"{found['forward'] / 2**20:,.0f} MB", f"{found['seconds']['forward']:.0f}"),
        ("what the trace keeps", f"{found['kept'] / 2**20:,.0f} MB", ""),
        ("trace", f"{found['trace'] / 2**20:,.0f} MB", f"{found['seconds']['trace']:.0f}"),
        ("trace / (forward + kept)", f"{found['ratio']:.3f}", ""),
    ]
    return f"{what}; kept: `{', '.join(found['keep'])}`.\n\n" + table(("", "peak memory", "seconds"), rows)


def page_speed(found: dict[str, Any]) -> str:
    """Return how fast the page is at its size, and what it sends."""
    what = f"{found['tokens']} tokens, {found['layers']} layers, {found['heads']} heads, width {found['width']}"
    rows = [
        ("first picture after the pass", f"{found['first_picture_s']:.2f} s", "1 s"),
        ("hover, 95th percentile", f"{found['hover_ms']:.1f} ms", "16 ms"),
        ("code of the page", f"{found['code_bytes']:,} bytes", "300,000 bytes"),
        ("largest JSON of a response", f"{found['json_bytes']:,} bytes", "200,000 bytes"),
    ]
    load = f"The machine's load was {found['machine']['load']} on {found['machine']['cores']} cores."
    return f"{what}. {load}\n\n" + table(("", "measured", "at most"), rows)


def long_text(found: dict[str, Any]) -> str:
    """Return the memory of looking into a long text beside what was stated."""
    what = f"{found['tokens']:,} tokens, {found['layers']} layers, {found['heads']} heads, width {found['width']}"
    rows = [
        (name, f"{found[key] / 2**20:,.0f} MB")
        for name, key in (("stated", "stated"), ("measured", "measured"), ("all patterns whole", "patterns"))
    ]
    return f"{what}; the pass took {found['seconds']['pass']} s.\n\n" + table(("", "memory"), rows)


def looking_cost(found: dict[str, Any]) -> str:
    """Return what inspection costs where nobody looks."""
    rows = [
        ("tokens a second with over without inspection", f"{found['ratio']:.3f}"),
        ("without over without, which is chance", f"{found['control']:.3f}"),
        ("answers that differ in any bit", f"{found['different']} of {found['answers']}"),
    ]
    load = f"The machine's load was {found['machine']['load']} on {found['machine']['cores']} cores."
    return f"{load}\n\n" + table(("", "measured"), rows)


def packed_rows(found: dict[str, Any]) -> str:
    """Return a row for each family: the bytes held, forward and backward, for so many tokens."""
    lengths = sorted({row["tokens"] for row in found["rows"]})
    families = dict.fromkeys(row["family"] for row in found["rows"])
    counted = {(row["family"], row["tokens"]): row["counted"] for row in found["rows"]}
    rows = [(family, *(f"{counted[family, length] / 2**20:.1f} MiB" for length in lengths)) for family in families]
    return table(("", *(f"{length:,} tokens" for length in lengths)), rows)


def mixer_lengths(found: dict[str, Any]) -> str:
    """Return how often as fast as attention each mixer was, by length, and what a session of each holds."""
    parts = []
    for way in dict.fromkeys(row["way"] for row in found["times"]):
        times = [row for row in found["times"] if row["way"] == way]
        faster = {(row["mixer"], row["length"]): row["faster"] for row in times}
        lengths = sorted({row["length"] for row in times})
        mixers = dict.fromkeys(row["mixer"] for row in times)
        rows = [(mixer, *(f"{faster[mixer, length]:.2f}" for length in lengths)) for mixer in mixers]
        parts.append(f"{way.capitalize()}, times attention's speed, {found['machine']['threads']} threads:\n")
        parts.append(table(("", *(f"{length:,} tokens" for length in lengths)), rows))
    held = {(row["mixer"], row["tokens"]): row["bytes"] for row in found["memory"]}
    lengths = sorted({row["tokens"] for row in found["memory"]})
    rows = [
        (mixer, *(f"{held[mixer, length]:,}" for length in lengths))
        for mixer in dict.fromkeys(row["mixer"] for row in found["memory"])
    ]
    parts.append("Bytes that a session holds:\n")
    parts.append(table(("", *(f"{length:,} tokens" for length in lengths)), rows))
    return "\n".join(parts)


def engine(found: dict[str, Any]) -> str:
    """Return what the engine gains and costs: ratios within a round, for the machine was shared."""
    streams, pages, wait = found["streams"], found["pages"], found["fairness"]
    rows = [
        ("eight streams beside one", f"{streams['eight_over_one']:.2f}"),
        ("eight streams beside the fastest single one", f"{streams['eight_over_single']:.2f}"),
        *(
            (f"share of a round that is no step, {name}", f"{one['share']:.1%}")
            for name, one in found["overhead"].items()
        ),
        ("eight short prompts one by one beside in one call", f"{found['prompts']['alone_over_together']:.2f}"),
        *(
            (f"step over pages beside slots, {n} tokens", f"{one['step_pages_over_slots']:.2f}")
            for n, one in pages.items()
        ),
        ("longest wait beside a prompt of 6,000 tokens, in rounds", f"{wait['longest_wait_over_median_round']:.2f}"),
    ]
    return table(("", "ratio"), rows)


def finetuning(found: dict[str, Any]) -> str:
    """Return a row for each contender: steps a second, what ours are to them, and the padding."""
    rows = []
    for task in ("bert on sst2", "t5 on multi30k"):
        for name, rate in found[task]["steps per second"].items():
            ratio = found[task]["ratios"].get(f"orrery / {name}")
            padding = f"{found[task]['padding'][name]:.1%}"
            rows.append((task, name, f"{rate:.1f}", "" if ratio is None else f"{ratio:.2f}", padding))
    return table(("", "contender", "steps/s", "orrery / it", "padding"), rows)


def pretraining_gain(found: dict[str, Any]) -> str:
    """Return a row for each number of labels: mean and spread over the seeds of both ways, and the gain."""
    rows = []
    for labels in dict.fromkeys(run["labels"] for run in found["runs"]):
        runs = [run for run in found["runs"] if run["labels"] == labels]
        scores = {way: [run["accuracy"] for run in runs if run["way"] == way] for way in found["ways"]}
        told = [f"{mean(each):.1%} (spread {stdev(each):.1%})" for each in scores.values()]
        first, second = map(mean, scores.values())
        rows.append((f"{labels:,}", str(runs[0]["steps"]), *told, f"{100 * (first - second):+.1f} points"))
    return table(("labels", "steps", *found["ways"], "gain"), rows)


def quantisation(found: dict[str, Any]) -> str:
    """Return a row for each kind of numbers: bytes, time to load, perplexity."""
    rows = [
        (
            name,
            f"{row['bytes']:,}",
            f"{row['load_seconds']:.3f}",
            f"{row['perplexity']:.4f}",
            f"{row['change_percent']:+.3f} %",
        )
        for name, row in found["kinds"].items()
    ]
    return table(("matrices", "bytes of weights", "seconds to load", "perplexity", "change"), rows)


def bad_requests(found: dict[str, Any]) -> str:
    """Return what each server did with the requests, for those on routes that both have, and for all."""
    heads = ("cases", "refused", "expected", "named", "survived", "accepted", "server errors", "no answer")
    shared = set.intersection(*(set(own["cases"]) for own in found.values()))
    rows = [(name, *(f"{own['summary'][head]:,}" for head in heads)) for name, own in found.items()]
    both = ", ".join(
        f"{name} {sum(own['cases'][case]['good'] for case in shared)} of {len(shared)}" for name, own in found.items()
    )
    told = ("requests", "4xx", "the right one", "field named", "connection lives", "accepted", "5xx", "no answer")
    return table(("server", *told), rows) + f"\nAll four right, on routes that both have: {both}.\n"


def lm_eval_server(found: dict[str, Any]) -> str:
    """Return a row for each metric of both ways, and the greatest differences."""
    return _beside_hf("server", found["tasks"])


def lm_eval_three_ways(found: dict[str, Any]) -> str:
    """Return the same of the server and of the class that lm_eval loads."""
    ways = {"server": "server", "orrery": "class"}
    return "\n".join(_beside_hf(way, found[way]["tasks"], name) for way, name in ways.items())


def _beside_hf(way: str, tasks: dict[str, Any], name: str | None = None) -> str:
    rows = [
        (task, metric, f"{value[way]:.7g}", f"{value['hf']:.7g}", f"{one['sample difference']:.1e}")
        for task, one in tasks.items()
        for metric, value in one["metrics"].items()
        if "stderr" not in metric
    ]
    return table(("task", "metric", name or way, "hf", "greatest difference of a sample, of its size"), rows)


def preferences(found: dict[str, Any]) -> str:
    """Return milliseconds of a step of each, and how much faster ours is."""
    rows = [(who, f"{spent:,.0f}") for who, spent in found["milliseconds"].items()]
    span = f"{min(found['ratios']):.2f} to {max(found['ratios']):.2f}"
    said = f"{found['pairs']} pairs a step, {found['threads']} thread; {found['ratio']:.2f} times as fast ({span}).\n\n"
    return said + table(("program", "ms a step"), rows)


def overload(found: dict[str, Any]) -> str:
    """Return milliseconds of 64 clients at once, what memory did, and tokens written for clients that had left."""
    storm, memory_, left = found["64 clients at once"], found["memory"], found["leaving"]
    rows = [
        (name.removeprefix("ms of "), *(f"{value:,}" for value in own.values()))
        for name, own in storm.items()
        if name.startswith("ms")
    ]
    wrong = storm["answers that differ from the same alone"]
    said = f"Load {found['load'][0]} on {found['processors']} processors. {storm['answered']:,} answered, "
    said += f"{storm['refused with 429']:,} refused, {wrong} wrong. Memory after each tenth of "
    said += (
        f"{memory_['requests']:,} requests: {', '.join(map(str, memory_['MiB']))} MiB. A client that left a stream of "
    )
    free = left["ms until the row was seen free"]
    said += f"{left['ms a token']} ms a token was seen to have freed its row after {free['p50']} ms"
    return table(("ms of", "p50", "p95", "p99", "max", "count"), rows) + f"\n{said}.\n"


def decoding(found: dict[str, Any]) -> str:
    """Return what each contender of each race wrote, and how it stands to the first."""
    parts = [f"{found['threads']} threads, torch {found['torch']}. Ratios are medians over the rounds.\n"]
    for race, one in found["races"].items():
        first = next(iter(one["contenders"]))
        rows = []
        for name, own in one["contenders"].items():
            share = own.get("share of bandwidth")
            speed, span = f"{own['tokens_per_second']:,}", " to ".join(f"{end:,}" for end in own["range"])
            rows.append((name, speed, span, str(own[f"{first} over it"]), "" if share is None else f"{share:.0%}"))
        parts.append(f"{race}, {one['rounds']} rounds, bandwidth {one['bandwidth_GB_s']} GB/s:\n")
        parts.append(table(("contender", "tokens/s", "range", f"{first} over it", "of the bandwidth"), rows))
    return "\n".join(parts)


def plan_measured(found: dict[str, Any]) -> str:
    """Return memory and seconds of a step of each shape, predicted and measured."""

    def cells(pair: dict[str, float], unit: float, form: str) -> tuple[str, str, str]:
        predicted, measured = pair["predicted"], pair["measured"]
        return f"{predicted / unit:{form}}", f"{measured / unit:{form}}", f"{predicted / measured - 1:+.1%}"

    rows = [
        (
            row["shape"],
            f"{row['rows']} x {row['length']}",
            *cells(row["tensors"], 1e6, ",.0f"),
            *cells(row["process"], 1e6, ",.0f"),
            *cells(row["seconds"], 1, ".3f"),
        )
        for row in found["rows"]
    ]
    said = f"{found['dtype']}, {found['threads']} thread(s), the median of {found['steps']} steps.\n\n"
    columns = ("MB of tensors", "measured", "miss", "MB of the process", "measured", "miss", "s", "measured", "miss")
    return said + table(("shape", "rows x tokens", *columns), rows)


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    function.__name__: function
    for function in (
        quantisation,
        training,
        tokenizer_speed,
        word2vec,
        memory,
        sentencepiece_speed,
        trace_memory,
        page_speed,
        long_text,
        looking_cost,
        packed_rows,
        mixer_lengths,
        engine,
        finetuning,
        pretraining_gain,
        bad_requests,
        lm_eval_server,
        lm_eval_three_ways,
        overload,
        decoding,
        preferences,
        plan_measured,
    )
}


def page() -> str:
    """Return a section for each recorded file, with what its program says of itself.

    Raises:
        ValueError: a record has no table here.
    """
    parts = []
    for path in sorted(BENCHMARKS.glob("*.json")):
        if path.stem not in TABLES:
            raise ValueError(f"benchmarks/{path.name} has no table in docs/_benchmarks.py")
        said = ast.get_docstring(ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))) or ""
        summary = " ".join(said.partition("\n\n")[0].split()).replace("`", "")
        parts.append(f"## {path.stem}\n\n{summary} Program: `benchmarks/{path.stem}.py`.\n")
        parts.append(TABLES[path.stem](json.loads(path.read_text(encoding="utf-8"))))
    return "\n".join(parts)


class Benchmarks(SphinxDirective):
    """The sections."""

    def run(self) -> list[nodes.Node]:
        """Make them from the records as they are."""
        for path in BENCHMARKS.glob("*.json"):
            self.env.note_dependency(str(path))
        return self.parse_text_to_nodes(page(), allow_section_headings=True)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("benchmarks", Benchmarks)
    return {"parallel_read_safe": True}
