"""word2vec beside gensim: same text, settings, threads and seeds, each run in its own process, taken in turns.

    ORRERY_DATA=... python benchmarks/word2vec.py --output benchmarks/word2vec.json  (novels and factbook, 3 seeds)
    ORRERY_DATA=... python benchmarks/word2vec.py --megabytes 5 --seeds 1 --epochs 1
    ORRERY_DATA=... python benchmarks/word2vec.py --similarities FOLDER --kinds gensim-file orrery-in-order --seeds 5

Needs the extras `fast` and `oracle`. Speed is words of the training text per second of training, the vocabulary
known and the code compiled; memory is the highest resident size of the whole process. `gensim-file` streams the
text from disk, `gensim` holds it as lists: compare memory with the first, speed with the faster. Every file EN-*.txt
of the folder of similarities, three words a line, is measured: those of the data set, or more of their kind.
"""

import argparse
import json
import lzma
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from _record import Record, parsed, parser

KINDS = ("gensim", "gensim-file", "orrery-in-order", "orrery-hogwild")
WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")


def main() -> None:
    options = parse()
    if options.child:
        print(json.dumps(measure(options)))
        return
    record, rows = Record(options, ("gensim", "numba")), []
    with tempfile.TemporaryDirectory() as folder:
        options.text = options.text or write_text(Path(folder) / "text.txt", options.megabytes)
        for seed in range(1, options.seeds + 1):
            for kind in options.kinds:
                rows.append(run_child(options, kind, seed))
                show(rows[-1])
    summary(rows, options.kinds)
    if options.output:
        names = ("seeds", "epochs", "workers", "width", "window", "negative", "cbow", "hs", "rate")
        settings = {name: getattr(options, name) for name in names}
        record.write({"settings": settings, "rows": rows})


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--megabytes", type=float, default=1e9, help="use only the first part of the text")
    made.add_argument("--text", help="a text of one sentence a line instead")
    for name, value in {"seeds": 3, "epochs": 5, "workers": 2, "width": 100, "window": 5, "negative": 5}.items():
        made.add_argument(f"--{name}", type=int, default=value)
    made.add_argument("--cbow", action="store_true")
    made.add_argument("--hs", action="store_true")
    made.add_argument("--rate", type=float, default=0.025)
    made.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    made.add_argument("--similarities", type=Path, help="a folder of more similarity sets, EN-*.txt")
    made.add_argument("--child", choices=KINDS, help=argparse.SUPPRESS)
    made.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    return parsed(made, {"megabytes": 0.3, "seeds": 1, "epochs": 1, "workers": 1, "width": 16})


def data() -> Path:
    return Path(os.environ.get("ORRERY_DATA", "data"))


def write_text(path: Path, megabytes: float) -> str:
    """One paragraph a line, lower case words. The factbook stands first, so that a short part has it too."""
    left = megabytes * 1e6
    with path.open("w", encoding="utf-8") as file:
        for name in ("factbook/countries.jsonl.xz", "eltec-novels/train.jsonl.xz"):
            with lzma.open(data() / name, "rt", encoding="utf-8") as lines:
                for line in lines:
                    entry = json.loads(line)
                    content = entry.get("text") or "\n".join(text for _, text in entry["fields"])
                    for paragraph in content.lower().splitlines():
                        words = " ".join(WORD.findall(paragraph))
                        if words and left > 0:
                            left -= file.write(words + "\n")
    return str(path)


def run_child(options: argparse.Namespace, kind: str, seed: int) -> dict:
    command = [sys.executable, __file__, "--child", kind, "--seed", str(seed), "--text", options.text]
    for name in ("epochs", "workers", "width", "window", "negative", "rate"):
        command += [f"--{name}", str(getattr(options, name))]
    command += ["--cbow"] * options.cbow + ["--hs"] * options.hs
    command += ["--similarities", str(options.similarities)] if options.similarities else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def peak_megabytes() -> float:
    """The highest resident size; of this process alone, unlike ru_maxrss, which begins at the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def measure(options: argparse.Namespace) -> dict:
    start = time.perf_counter()
    row = (with_gensim if options.child.startswith("gensim") else with_orrery)(options)
    row |= {"kind": options.child, "seed": options.seed, "total_seconds": time.perf_counter() - start}
    row["words_per_second"] = row["words"] * options.epochs / row["seconds"]
    row["megabytes"] = peak_megabytes()
    vectors = row.pop("vectors")
    row |= quality(vectors, options.similarities or data() / "word-similarity")
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


def text_lines(path: str) -> Iterator[list[str]]:
    with Path(path).open(encoding="utf-8") as file:
        yield from (line.split() for line in file)


def with_gensim(options: argparse.Namespace) -> dict:
    from gensim.models.word2vec import LineSentence, Word2Vec

    from_file = options.child == "gensim-file"
    sentences = LineSentence(options.text) if from_file else list(text_lines(options.text))
    negative = 0 if options.hs else options.negative
    model = Word2Vec(
        vector_size=options.width, window=options.window, sg=int(not options.cbow), hs=int(options.hs),
        negative=negative, workers=options.workers, epochs=options.epochs, min_count=5, sample=1e-3,
        seed=options.seed, alpha=options.rate,
    )  # fmt: skip
    model.build_vocab(sentences)
    start = time.perf_counter()
    model.train(sentences, total_examples=model.corpus_count, epochs=options.epochs)
    seconds = time.perf_counter() - start
    words = sum(model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key)
    return {"seconds": seconds, "words": int(words), "vectors": (model.wv.index_to_key, model.wv.vectors)}


def with_orrery(options: argparse.Namespace) -> dict:
    from orrery.models.word2vec.draws import cbow, skip_gram
    from orrery.models.word2vec.objectives import HierarchicalSoftmax, NegativeSampling
    from orrery.models.word2vec.parts import Settings
    from orrery.models.word2vec.runners import hogwild, in_order
    from orrery.models.word2vec.train import compile_ahead, train
    from orrery.models.word2vec.vocabulary import StoredCorpus, Vocabulary

    architecture = cbow if options.cbow else skip_gram
    objective = HierarchicalSoftmax if options.hs else partial(NegativeSampling, negatives=options.negative)
    compile_ahead(architecture, objective)
    settings = Settings(
        width=options.width, window=options.window, epochs=options.epochs, rate=options.rate,
        workers=options.workers, seed=options.seed,
    )  # fmt: skip
    vocabulary = Vocabulary.count(text_lines(options.text))
    with tempfile.TemporaryFile() as file:
        corpus = StoredCorpus(file, text_lines(options.text), vocabulary)
        run = in_order if options.child == "orrery-in-order" else hogwild
        start = time.perf_counter()
        trained = train(corpus, vocabulary, architecture, objective(vocabulary), settings, run)
        seconds = time.perf_counter() - start
    vectors = (vocabulary.words, trained.vectors)
    return {"seconds": seconds, "words": corpus.words, "losses": trained.measured, "vectors": vectors}


def quality(vectors: tuple, similarities: Path) -> dict:
    """Both trainers are judged by the same code; gensim's own judge agrees with it in the tests."""
    from orrery.evaluation.benchmarks.word_vectors import judge_similarity
    from orrery.evaluation.benchmarks.word_vectors import measure as measure_vectors
    from orrery.models.word2vec.vectors import Vectors

    ours = Vectors(*vectors)
    measures = measure_vectors(ours, data())
    asked = sum(answer.asked for answer in measures.analogies)
    files = sorted(similarities.glob("EN-*.txt"))
    judged = {file.stem.removeprefix("EN-"): judge_similarity(ours, list(pairs(file))) for file in files}
    scores = {"analogies": measures.accuracy, **{name: score for name, (score, _, _) in judged.items()}}
    used = {"analogies": asked, **{name: count for name, (_, count, _) in judged.items()}}
    return {"scores": {name: round(score, 4) for name, score in scores.items()}, "used": used}


def pairs(file: Path) -> Iterator[tuple[str, str, float]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        match line.split():
            case one, other, score:
                yield one, other, float(score)


def show(row: dict) -> None:
    print(
        f"seed {row['seed']}  {row['kind']:16} {row['words_per_second']:>10,.0f} words/s  {row['megabytes']:>6.0f} MB"
        f"  {', '.join(f'{name} {score:.4f}' for name, score in row['scores'].items())}"
        f"  total {row['total_seconds']:.1f} s  loss {', '.join(f'{x:.4f}' for x in row.get('losses', ()))}",
        flush=True,
    )


def summary(rows: list[dict], kinds: list[str]) -> None:
    """The means, and how many times as fast as the faster gensim of the same turn: the median over the turns."""
    print("\nmean over the seeds")
    for kind in kinds:
        mine = [row for row in rows if row["kind"] == kind]
        means = {name: statistics.mean(row[name] for row in mine) for name in ("words_per_second", "megabytes")}
        print(
            f"{kind:16} {means['words_per_second']:>10,.0f} words/s  {means['megabytes']:>6.0f} MB{faster(mine, rows)}"
        )
        for name, used in mine[0]["used"].items():
            print(f"{'':16} {name:14} ({used:,}) {spread([row['scores'][name] for row in mine])}")


def spread(values: list[float]) -> str:
    """The mean, and by how much the mean of as many other seeds would differ."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{statistics.mean(values):.4f} ± {error:.4f}"


def faster(mine: list[dict], rows: list[dict]) -> str:
    peers = [[row["words_per_second"] for row in rows if is_peer(row) and row["seed"] == one["seed"]] for one in mine]
    if not all(peers) or is_peer(mine[0]):
        return ""
    ratios = [one["words_per_second"] / max(speeds) for one, speeds in zip(mine, peers, strict=True)]
    return f"  {statistics.median(ratios):.2f} times gensim ({min(ratios):.2f} to {max(ratios):.2f})"


def is_peer(row: dict) -> bool:
    return row["kind"].startswith("gensim")


if __name__ == "__main__":
    main()
