"""The table of each benchmark's record, from what it found."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import mean, stdev
from typing import Any


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def training(content: dict[str, Any]) -> str:
    """Return tokens a second of every program, the ratios alike and as it comes, and how far the losses are apart."""
    speed = [
        (name, f"{value:,.0f}", *(f"{loss:.4f}" for loss in content["losses"][name]))
        for name, value in content["tokens_per_second"].items()
    ]
    ratios = [
        (name, one["of"], f"{one['ratio']:.2f}", f"{one['lowest']:.2f} to {one['highest']:.2f}")
        for name, one in content["ratios"].items()
    ]
    rest = [
        (f"products' share of the step, {n}", f"{v:.0%}") for n, v in content["products' share of the step"].items()
    ]
    rest += [(f"largest loss difference, {n}", f"{v:.1e}") for n, v in content["largest loss difference"].items()]
    heads = ("program", "tokens/s", "first loss", "second", "last")
    parts = (table(heads, speed), table(("", "of", "times as fast", "range"), ratios), table(("", "value"), rest))
    return "\n".join(parts)


def tokenizer_speed(content: dict[str, Any]) -> str:
    """Return seconds beside the library's."""
    rows = [
        (work, who, f"{one['seconds']:.2f}", f"{one['processor_seconds']:.2f}", f"{one['ratio']:.3f}")
        for work in ("train", "encode")
        for who, one in content[work].items()
    ]
    size = f"{content['bytes']:,} bytes, {content['vocabulary']:,} ids.\n\n"
    return size + table(("work", "by", "seconds", "processor seconds", "time beside the library's"), rows)


def word2vec(content: dict[str, Any]) -> str:
    """Return the mean over seeds of every way of training, and of every set that was asked of it."""
    kinds = {
        kind: [row for row in content["rows"] if row["kind"] == kind]
        for kind in dict.fromkeys(row["kind"] for row in content["rows"])
    }
    sets = list(next(iter(kinds.values()))[0]["scores"])
    rows = []
    for kind, runs in kinds.items():
        speeds = [
            format(mean(run[key] for run in runs), form)
            for key, form in (("words_per_second", ",.0f"), ("megabytes", ".0f"))
        ]
        rows.append(
            (kind, str(len(runs)), *speeds, *(f"{mean(run['scores'][name] for run in runs):.3f}" for name in sets))
        )
    settings = ", ".join(f"{name} {value}" for name, value in content["settings"].items())
    return f"Settings: {settings}. Means over the seeds.\n\n" + table(("by", "seeds", "words/s", "MB", *sets), rows)


def memory(content: dict[str, Any]) -> str:
    """Return resident memory at the first and the last mark of each family."""
    rows = [
        (
            row["family"],
            f"{row['steps']:,}",
            row["precision"],
            *(f"{row['marks'][place]['resident']:.0f} MB at step {row['marks'][place]['step']:,}" for place in (0, -1)),
            f"{row['growth']:+.1%}",
        )
        for row in content["rows"]
    ]
    return table(("family", "steps", "precision", "first", "last", "growth"), rows)


def sentencepiece_speed(content: dict[str, Any]) -> str:
    """Return speed of encoding and quality of training beside the library's."""
    columns = ("sentencepiece, MB/s", "orrery, MB/s", "plain, MB/s")
    encode = [
        (model, text, *(f"{one[key]:.2f}" for key in columns))
        for model, texts in content["encode"].items()
        for text, one in texts.items()
    ]
    train = [
        (name, who, f"{one[who]['seconds']:.1f}", f"{one[who]['tokens a word']:.4f}", f"{one[who]['nats a word']:.3f}")
        for name, one in content["train"].items()
        for who in ("orrery", "sentencepiece")
    ]
    same = [one["equal ids"] for texts in content["encode"].values() for one in texts.values()]
    first = f"The ids were equal in {sum(same)} of {len(same)} rows.\n\n"
    first += table(("model", "text", *columns[:2], "orrery without numba, MB/s"), encode)
    return first + "\n" + table(("text", "by", "seconds", "tokens a word", "nats a word"), train)


def trace_memory(content: dict[str, Any]) -> str:
    """Return the memory and the time of a trace beside the plain forward."""
    what = (
        f"{content['tokens']:,} tokens, {content['layers']} layers, {content['heads']} heads, width {content['width']}"
    )
    rows = [
        ("plain forward", f"{content['forward'] / 2**20:,.0f} MB", f"{content['seconds']['forward']:.0f}"),
        ("what the trace keeps", f"{content['kept'] / 2**20:,.0f} MB", ""),
        ("trace", f"{content['trace'] / 2**20:,.0f} MB", f"{content['seconds']['trace']:.0f}"),
        ("trace / (forward + kept)", f"{content['ratio']:.3f}", ""),
    ]
    return f"{what}; kept: `{', '.join(content['keep'])}`.\n\n" + table(("", "peak memory", "seconds"), rows)


def page_speed(content: dict[str, Any]) -> str:
    """Return how fast the page is at its size, and what it sends."""
    what = f"{content['tokens']} tokens, {content['layers']} layers, {content['heads']} heads, width {content['width']}"
    rows = [
        ("first picture after the pass", f"{content['first_picture_s']:.2f} s", "at most 1 s"),
        ("hover, 95th percentile", f"{content['hover_ms']:.1f} ms", "at most 16 ms"),
        *_turned(content),
        ("code of the page", f"{content['code_bytes']:,} bytes", "at most 400,000 bytes"),
        ("largest JSON of a response", f"{content['json_bytes']:,} bytes", "at most 200,000 bytes"),
    ]
    return f"{what}.\n\n" + table(("", "measured", "goal"), rows)


def _turned(content: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the rows of sliders and animation; records before them have none."""
    if "slider_ms" not in content:
        return []
    model = f"{content['turned_parameters']:,} parameters, {content['turned_tokens']} tokens"
    return [
        ('"working" after a click', f"{content['working_ms']:.0f} ms", "at most 100 ms"),
        (f"answer of a slider, {model}", f"{content['slider_ms']:.0f} ms", "at most 50 ms"),
        ("the whole pass behind it", f"{content['pass_ms']:.0f} ms", ""),
        ("frames of the animation", f"{content['frames_per_s']:.0f} a second", "at least 30 a second"),
    ]


def long_text(content: dict[str, Any]) -> str:
    """Return the memory of looking into a long text beside what was stated."""
    what = (
        f"{content['tokens']:,} tokens, {content['layers']} layers, {content['heads']} heads, width {content['width']}"
    )
    rows = [
        (name, f"{content[key] / 2**20:,.0f} MB")
        for name, key in (("stated", "stated"), ("measured", "measured"), ("all patterns whole", "patterns"))
    ]
    return f"{what}; the pass took {content['seconds']['pass']} s.\n\n" + table(("", "memory"), rows)


def looking_cost(content: dict[str, Any]) -> str:
    """Return what inspection costs where nobody looks, beside servers that are alike."""
    rows = [
        (name, f"{one['median']:.3f}", f"{one['lower quartile']:.3f} to {one['upper quartile']:.3f}")
        for name, one in content["ratios"].items()
    ]
    rows.append(("answers that differ in any bit", f"{content['different']} of {content['answers']}", ""))
    return table(("tokens a second of the processor", "median of the rounds", "quartiles"), rows)


def packed_rows(content: dict[str, Any]) -> str:
    """Return a row for each family: the bytes held, forward and backward, for so many tokens."""
    lengths = sorted({row["tokens"] for row in content["rows"]})
    families = dict.fromkeys(row["family"] for row in content["rows"])
    counted = {(row["family"], row["tokens"]): row["counted"] for row in content["rows"]}
    rows = [(family, *(f"{counted[family, length] / 2**20:.1f} MiB" for length in lengths)) for family in families]
    return table(("", *(f"{length:,} tokens" for length in lengths)), rows)


def mixer_lengths(content: dict[str, Any]) -> str:
    """Return how often as fast as attention each mixer was, by length, and what a session of each holds."""
    parts = []
    for way in dict.fromkeys(row["way"] for row in content["times"]):
        times = [row for row in content["times"] if row["way"] == way]
        faster = {(row["mixer"], row["length"]): row["faster"] for row in times}
        lengths = sorted({row["length"] for row in times})
        mixers = dict.fromkeys(row["mixer"] for row in times)
        rows = [(mixer, *(f"{faster[mixer, length]:.2f}" for length in lengths)) for mixer in mixers]
        parts.append(f"{way.capitalize()}, times attention's speed, {content['threads']} threads:\n")
        parts.append(table(("", *(f"{length:,} tokens" for length in lengths)), rows))
        behind = [mixer for mixer in mixers if faster.get((mixer, 8192), 1) < 1]
        if 8192 in lengths:
            parts.append(f"Behind attention at 8,192 tokens on this machine: {', '.join(behind) or 'none'}.\n")
    held = {(row["mixer"], row["tokens"]): row["bytes"] for row in content["memory"]}
    lengths = sorted({row["tokens"] for row in content["memory"]})
    rows = [
        (mixer, *(f"{held[mixer, length]:,}" for length in lengths))
        for mixer in dict.fromkeys(row["mixer"] for row in content["memory"])
    ]
    parts.append("Bytes that a session holds:\n")
    parts.append(table(("", *(f"{length:,} tokens" for length in lengths)), rows))
    return "\n".join(parts)


def engine(content: dict[str, Any]) -> str:
    """Return what the engine gains and costs, and how long streams wait beside a long prompt."""
    streams, pages = content["streams"], content["pages"]
    rows = [
        ("eight streams beside one", f"{streams['eight_over_one']:.2f}"),
        ("eight streams beside the fastest single one", f"{streams['eight_over_single']:.2f}"),
        *(
            (f"share of a round that is no step, {name}", f"{one['share']:.1%}")
            for name, one in content["overhead"].items()
        ),
        ("eight short prompts one by one beside in one call", f"{content['prompts']['alone_over_together']:.2f}"),
        *(
            (f"step over pages beside slots, {n} tokens", f"{one['step_pages_over_slots']:.2f}")
            for n, one in pages.items()
        ),
    ]
    waits = []
    for name, one in content["fairness"].items():
        before, beside = (one[f"milliseconds between tokens {when}"] for when in ("before", "beside the prompt"))
        times = f"{one['longest beside over median before']:.1f}"
        spans = [f"{own['median']:,.0f} and {own['longest']:,.0f}" for own in (before, beside)]
        waits.append(
            (
                name,
                f"{one['prompt']:,}",
                *spans,
                times,
                f"{one['seconds until the prompt' + chr(39) + 's first token']:.1f}",
            )
        )
    heads = (
        "prompt read in",
        "its tokens",
        "ms between tokens before: median and longest",
        "beside it",
        "longest beside over median before",
        "s until its first token",
    )
    return table(("", "ratio"), rows) + "\n" + table(heads, waits)


def finetuning(content: dict[str, Any]) -> str:
    """Return a row for each program: steps a second, what ours are to them, and the padding."""
    rows = []
    for task in ("bert on sst2", "t5 on multi30k"):
        for name, rate in content[task]["steps per second"].items():
            ratio = content[task]["ratios"].get(f"orrery / {name}")
            padding = f"{content[task]['padding'][name]:.1%}"
            rows.append((task, name, f"{rate:.1f}", "" if ratio is None else f"{ratio:.2f}", padding))
    return table(("", "program", "steps/s", "orrery / it", "padding"), rows)


def pictures(content: dict[str, Any]) -> str:
    """Return the scores of every way to learn from pictures, means over the seeds, and what stands beside them."""
    rows = []
    for part, one in content.items():
        if "before" in one:
            rows.append((part, one["before"]["run"], "1", "", "", "", f"{one['before']['processor_seconds']:.0f}"))
        ways = dict.fromkeys(run["run"] for run in one["runs"])
        for way in ways:
            runs = [run for run in one["runs"] if run["run"] == way]
            main, *others = runs[0]["scores"]
            scores = [run["scores"][main]["score"] for run in runs]
            spread = f"{stdev(scores):.4f}" if len(scores) > 1 else ""
            more = ", ".join(f"{name} {mean(run['scores'][name]['score'] for run in runs):.4f}" for name in others[:2])
            if "attention" in runs[0]:
                for name, said in (("attention", "attention in the box"), ("inside", "names that look there most")):
                    looked = [mean(blocks) for blocks in zip(*(run[name] for run in runs), strict=True)]
                    more += f", {said} by block " + " and ".join(f"{share:.2f}" for share in looked)
            seconds = f"{mean(run['processor_seconds'] for run in runs):.0f}"
            rows.append((part, way, str(len(runs)), f"{main} {mean(scores):.4f}", spread, more, seconds))
        rows += [(part, name, "", f"accuracy {score:.4f}", "", "", "") for name, score in one.get("beside", {}).items()]
    return table(("part", "way", "seeds", "score", "spread", "also", "processor seconds"), rows)


def pretraining_gain(content: dict[str, Any]) -> str:
    """Return a row for each number of labels: mean and spread over the seeds of both ways, and the gain."""
    rows = []
    for labels in dict.fromkeys(run["labels"] for run in content["runs"]):
        runs = [run for run in content["runs"] if run["labels"] == labels]
        scores = {way: [run["accuracy"] for run in runs if run["way"] == way] for way in content["ways"]}
        told = [f"{mean(each):.1%} (spread {stdev(each):.1%})" for each in scores.values()]
        first, second = map(mean, scores.values())
        rows.append((f"{labels:,}", str(runs[0]["steps"]), *told, f"{100 * (first - second):+.1f} points"))
    return table(("labels", "steps", *content["ways"], "gain"), rows)


def quantisation(content: dict[str, Any]) -> str:
    """Return a row for each kind of numbers: bytes, time to load, perplexity."""
    rows = [
        (
            name,
            f"{row['bytes']:,}",
            f"{row['load_seconds']:.3f}",
            f"{row['perplexity']:.4f}",
            f"{row['change_percent']:+.3f} %",
        )
        for name, row in content["kinds"].items()
    ]
    return table(("matrices", "bytes of weights", "seconds to load", "perplexity", "change"), rows)


def bad_requests(content: dict[str, Any]) -> str:
    """Return what each server did with the requests: all, and those that are wrong for any server of this kind."""
    heads = ("cases", "refused", "expected", "named", "survived", "accepted", "server errors", "no answer", "good")
    told = ("4xx", "the right one", "field named", "connection lives", "accepted", "5xx", "no answer", "all four right")
    parts = []
    for title, key in (("All that were sent", "summary"), ("Wrong for any server, on routes of all", "wrong anywhere")):
        rows = [(name, *(f"{own[key][head]:,}" for head in heads)) for name, own in content["servers"].items()]
        parts.append(f"{title}:\n\n" + table(("server", "requests", *told), rows))
    return "\n".join(parts)


def lm_eval_server(content: dict[str, Any]) -> str:
    """Return a row for each metric of both ways, and the greatest differences."""
    return _beside_hf("server", content["tasks"])


def lm_eval_three_ways(content: dict[str, Any]) -> str:
    """Return the same of the server and of the class that lm_eval loads."""
    ways = {"server": "server", "orrery": "class"}
    return "\n".join(_beside_hf(way, content[way]["tasks"], name) for way, name in ways.items())


def _beside_hf(way: str, tasks: dict[str, Any], name: str | None = None) -> str:
    rows = [
        (task, metric, f"{value[way]:.7g}", f"{value['hf']:.7g}", f"{one['sample difference']:.1e}")
        for task, one in tasks.items()
        for metric, value in one["metrics"].items()
        if "stderr" not in metric
    ]
    return table(("task", "metric", name or way, "hf", "greatest difference of a sample, of its size"), rows)


def preferences(content: dict[str, Any]) -> str:
    """Return milliseconds of a step of each, how much faster ours is, and how far the losses are apart."""
    rows = []
    for who, spent in content["milliseconds"].items():
        ratios = content["ratios"].get(who)
        told = "" if ratios is None else f"{content['ratio'][who]:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        apart = content["largest loss difference"].get(who)
        losses = " ".join(f"{loss:.4f}" for loss in content["losses"][who])
        rows.append((who, f"{spent:,.0f}", told, losses, "" if apart is None else f"{apart:.1e}"))
    heads = ("program", "ms a step", "orrery is faster by", "losses: first, second, middle, last", "largest difference")
    return f"{content['pairs']} pairs a step, {content['steps']} steps.\n\n" + table(heads, rows)


def overload(content: dict[str, Any]) -> str:
    """Return milliseconds of 64 clients at once, what memory did, and tokens written for clients that had left."""
    storm, memory_, left = content["64 clients at once"], content["memory"], content["leaving"]
    rows = [
        (name.removeprefix("ms of "), *(f"{value:,}" for value in own.values()))
        for name, own in storm.items()
        if name.startswith("ms")
    ]
    wrong = storm["answers that differ from the same alone"]
    said = f"{storm['answered']:,} answered, "
    said += f"{storm['refused with 429']:,} refused, {wrong} wrong. Memory after each tenth of "
    said += (
        f"{memory_['requests']:,} requests: {', '.join(map(str, memory_['MiB']))} MiB. A client that left a stream of "
    )
    free = left["ms until the row was seen free"]
    said += f"{left['ms a token']} ms a token was seen to have freed its row after {free['p50']} ms; "
    beyond = left["tokens written beyond those whose text was read"]
    said += (
        f"beyond what it had read {beyond['median']:g} tokens were written in the median and {beyond['max']} at most"
    )
    return table(("ms of", "p50", "p95", "p99", "max", "count"), rows) + f"\n{said}.\n"


def decoding(content: dict[str, Any]) -> str:
    """Return what each program of each race wrote, how it stands to the first, and each peer's best."""
    parts = [
        f"Prompts of {content['prompt']} and answers of {content['new']} tokens; ratios are medians over the rounds.\n"
    ]
    for race, one in content["races"].items():
        first = next(iter(one["contenders"]))
        rows = []
        for name, own in one["contenders"].items():
            share = own.get("share of bandwidth")
            speed, span = f"{own['tokens_per_second']:,}", " to ".join(f"{end:,}" for end in own["range"])
            rows.append((name, speed, span, str(own[f"{first} over it"]), "" if share is None else f"{share:.0%}"))
        best = "; ".join(f"{own['way']}: {own['ratio']:.2f}" for own in one["peer's best"].values())
        parts.append(
            f"{race}, {one['rounds']} rounds, bandwidth {one['bandwidth_GB_s']} GB/s; beside the best {best}:\n"
        )
        parts.append(table(("program", "tokens/s", "range", f"{first} over it", "of the bandwidth"), rows))
    return "\n".join(parts)


def plan_measured(content: dict[str, Any]) -> str:
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
        for row in content["rows"]
    ]
    said = f"{content['dtype']}, {content['threads']} thread(s), the median of {content['steps']} steps.\n\n"
    columns = ("MB of tensors", "measured", "miss", "MB of the process", "measured", "miss", "s", "measured", "miss")
    return said + table(("shape", "rows x tokens", *columns), rows)


def grpo(content: dict[str, Any]) -> str:
    """Return seconds of a step of each, and how far losses and gradients are apart on the same answers."""
    rows = [(who, f"{spent:.3f}") for who, spent in content["seconds"].items()]
    same = content["same answers"]
    steps = len(same["loss and norm of the gradient"])
    said = content["what"]
    for key, how in (("", ""), ("compiled ", "compiled ")):
        ratios = content[f"{key}ratios"]
        said += f"; {how}{content[f'{key}ratio']:.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})"
    said += f". On the same answers losses and norms of the gradients of {steps} steps at a "
    said += f"rate of {same['rate']:g} are at most {same['largest difference']:.1e} apart.\n\n"
    return said + table(("program", "seconds a step"), rows)


def first_token(content: dict[str, Any]) -> str:
    """Return seconds to the first token from a cold start, and tokens of prompts read a second."""
    one = content["first token"]
    rows = [
        (name, *(f"{one[name]['seconds'][who]:.2f}" for who in ("orrery", "transformers")), f"{one[name]['ratio']:.2f}")
        for name in ("clock", "processors")
    ]
    parts = [f"{one['shape']}, {one['pairs']} pairs of fresh processes:\n\n"]
    parts[0] += table(("seconds of", "orrery", "transformers", "ratio"), rows)
    for dtype, own in content.get("prompts", {}).items():
        read = [
            (n, f"{r['tokens_per_second']:,.0f}", f"{r['orrery over it']:.2f}") for n, r in own["contenders"].items()
        ]
        parts.append(f"Prompts in {dtype}:\n\n" + table(("program", "tokens/s", "orrery over it"), read))
    best = content.get("our bfloat16 over a peer's best", {})
    parts += [
        f"Our bfloat16 over the best of each peer: {', '.join(f'{n} {r:.2f}' for n, r in best.items())}.\n"
    ] * bool(best)
    return "\n".join(parts)


def gpu(content: dict[str, Any]) -> str:
    """Return every number and word that a part found, by its way to it; single kernels are left to the record."""

    def leaves(at: str, value: Any) -> Iterator[tuple[str, str]]:
        if not isinstance(value, dict):
            yield at, str(value)
        elif not at.endswith("kernels"):
            for name, one in value.items():
                yield from leaves(f"{at}: {name}" if at else name, one)

    return table(("what", "found"), leaves("", content))


def startup(content: dict[str, Any]) -> str:
    """Return the median seconds of each command."""
    rows = [(n, f"{one['seconds']:.3f}", f"{one['processor_seconds']:.3f}") for n, one in content["commands"].items()]
    return f"{content['rounds']} rounds.\n\n" + table(("command", "seconds", "of processors"), rows)


def broken_copies(content: dict[str, Any]) -> str:
    """Return how many faults are seen, what came of the copy without one, and how each fault was seen."""
    control = content.get("control", {"outcome": "not run"})
    counts = ", ".join(f"{count} {name}" for name, count in content["outcomes"].items())
    said = f"{content['seen']} of {len(content['faults'])} faults are seen ({counts}). The copy without a fault: "
    said += f"{control['outcome']}. A copy had {content['limit_seconds']:g} seconds.\n\n"
    rows = [
        (one["break"], one["outcome"], one["by"].partition(": ")[0], f"{one['seconds']:.0f}")
        for one in content["faults"]
    ]
    return said + table(("fault", "outcome", "by", "seconds"), rows)


def prepare_scale(content: dict[str, Any]) -> str:
    """Return seconds, speed and memory of a preparation, whole and killed once."""
    rows = [(name.replace("_", " "), f"{value:,}") for name, value in content.items()]
    return table(("", "measured"), rows)


def two_processes(content: dict[str, Any]) -> str:
    """Return how many times as fast two processes learn as one, and multiply, in each precision."""
    rows = [
        (precision, layout, f"{own['tokens_per_second'][layout]:,}", ", ".join(f"{each:.2f}" for each in times),
         ", ".join(f"{each:.2f}" for each in own["plain products, two processes over one"]))
        for precision, own in content.items()
        if precision != "rounds"
        for layout, times in own["times one process"].items()
    ]  # fmt: skip
    return table(("precision", "processes", "tokens/s", "times one process, by round", "plain products"), rows)


def text(content: dict[str, Any]) -> str:
    """Return seconds and memory of each kind of tokenizer on one long line."""
    rows = [
        (row["kind"], row["text"], f"{row['bytes']:,}", f"{row['seconds']:.2f}", f"{row['processor_seconds']:.2f}",
         f"{row['megabytes']:.0f}", f"{row['tokens']:,}")
        for row in content["rows"]
    ]  # fmt: skip
    return table(("kind", "text", "bytes", "seconds", "of processors", "MB", "tokens"), rows)


def perplexity(content: dict[str, Any]) -> str:
    """Return seconds, perplexity and memory of each program that read the text."""
    rows = [
        (name, f"{one['seconds']:,.1f}", f"{one['perplexity']:.4f}", f"{one['memory'] / 2**20:,.0f}",
         f"{content['ratios'].get(name, 1):.2f}")
        for name, one in content["programs"].items()
    ]  # fmt: skip
    what = f"{content['model']}, {content['bytes']:,} bytes in windows of {content['length']} tokens, "
    what += f"{content['batch']} together"
    heads = ("", "seconds", "perplexity", "MiB beside the model", "time of it over ours, median of the rounds")
    return f"{what}.\n\n" + table(heads, rows)


def lora(content: dict[str, Any]) -> str:
    """Return milliseconds a step, how often as fast ours is, and how far the losses are apart."""
    rows = [
        (name, f"{spent:,.0f}", f"{content['ratio'].get(name, 1):.2f}",
         f"{content['largest loss difference'].get(name, 0):.1e}", f"{content['losses'][name][-1]:.4f}")
        for name, spent in content["milliseconds"].items()
    ]  # fmt: skip
    heads = ("", "ms a step", "time of it over ours", "largest difference of a loss", "last loss")
    return f"{content['model']}, {content['rows']} rows, {content['steps']} steps.\n\n" + table(heads, rows)


def next_item(found: dict[str, Any]) -> str:
    """Return the mean scores of each recipe over its seeds, and what simple methods have on the same users."""
    runs = {
        recipe: [run for run in found["runs"] if run["recipe"] == recipe]
        for recipe in dict.fromkeys(run["recipe"] for run in found["runs"])
    }
    names = ("NDCG@10", "HR@10", "MRR", "HR@10 unseen")
    rows = []
    for recipe, own in runs.items():
        scores = [[run["scores"][name] for run in own if name in run["scores"]] for name in names]
        told = [f"{mean(each):.4f} ({min(each):.4f} to {max(each):.4f})" if each else "" for each in scores]
        rows.append((recipe, str(len(own)), *told, f"{mean(run['seconds'] for run in own):,.0f}"))
        for method, simple in own[0]["simple"].items():
            rows.append(("", "", *(f"{simple[name]:.4f}" if name in simple else "" for name in names), method))
    heads = ("recipe", "seeds", *names, "seconds, or the method in its place")
    return "Means over the seeds, the lowest and the highest beside them.\n\n" + table(heads, rows)


def next_item_step(found: dict[str, Any]) -> str:
    """Return milliseconds of the processor a step, and how many times as fast ours is."""
    rows = [
        (name, f"{spent:,.0f}", *(f"{found['ratios'][name][key]:.2f}" for key in ("ratio", "lowest", "highest")))
        if name in found["ratios"]
        else (name, f"{spent:,.0f}", "", "", "")
        for name, spent in found["milliseconds"].items()
    ]
    said = f"{found['rows']} rows of {found['length']}, {found['items']:,} items, {found['rounds']} rounds.\n\n"
    return said + table(("", "ms a step", "times as fast as RecBole", "lowest", "highest"), rows)


def picture_speed(found: dict[str, Any]) -> str:
    """Return steps and pictures a second of both programs, and how many times as fast ours is."""
    parts = [(f"step, {kind}", one, one["ratios"]["orrery / Trainer"]) for kind, one in found["step"].items()]
    rows = [
        (part, name, f"{rate:,.1f} {unit}", f"{ratio:.2f}" if name != "orrery" else "")
        for part, one, ratio in [*parts, ("classified", found["classified"], found["classified"]["ratio"])]
        for unit in ("steps per second", "pictures per second")
        for name, rate in one.get(unit, {}).items()
    ]
    return f"Batches of {found['batch']}, {found['rounds']} rounds.\n\n" + table(
        ("", "program", "", "orrery / it"), rows
    )


def many_labels(found: dict[str, Any]) -> str:
    """Return the mean scores of each recipe over its seeds, of its parts, and of the simple methods beside it."""
    parts = []
    names = ("precision@1", "precision@3", "precision@5", "PSP@1", "PSP@3", "PSP@5", "nDCG@5")
    for recipe, simple in found["simple"].items():
        own = [run for run in found["runs"] if run["recipe"] == recipe]
        rows = [
            (method, *(f"{one['scores'][name]:.4f}" for name in names), f"{one['processor_seconds']:,.0f}")
            for method, one in simple.items()
        ]
        for method in own[0]["scores"]:
            scores = [[run["scores"][method][name] for run in own] for name in names]
            told = [f"{mean(each):.4f}" for each in scores]
            told[0] += f" ({min(scores[0]):.4f} to {max(scores[0]):.4f})"
            rows.append((method, *told, ""))
        joined = rows.pop()  # of the last seed it has every seed, of the others fewer
        every = own[-1]["scores"][joined[0]]
        rows.append((joined[0], *(f"{every[name]:.4f}" for name in names), ""))
        seconds = f"{min(run['seconds'] for run in own):,.0f} to {max(run['seconds'] for run in own):,.0f} s"
        parts.append(
            f"{recipe}, {own[0]['texts']:,} texts held back, {own[0]['labels']:,} labels, {len(own)} seeds of {seconds}"
            f"; {own[0]['read']:.1%} of the labels are read, {own[-1]['read_together']:.1%} by all seeds together.\n\n"
            + table(("method", *names, "seconds of the processor"), rows)
        )
    return "\n".join(parts)


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    function.__name__: function
    for function in (
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
        pictures,
        pretraining_gain,
        quantisation,
        bad_requests,
        lm_eval_server,
        lm_eval_three_ways,
        preferences,
        next_item,
        next_item_step,
        picture_speed,
        overload,
        decoding,
        plan_measured,
        grpo,
        first_token,
        startup,
        gpu,
        broken_copies,
        prepare_scale,
        two_processes,
        text,
        perplexity,
        lora,
        many_labels,
    )
}
"""What shows each program's record."""
