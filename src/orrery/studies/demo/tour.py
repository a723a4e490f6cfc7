"""The demo: from the text on this machine to a trained model, its measure, its writing and its inside."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.json_file import read_json
from orrery.data.corpora import Document, corpus_fingerprint
from orrery.data.documents import encode, joined
from orrery.data.sources.text import TextSource, read_documents, text_of
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.evaluation.floors import model_bits_per_byte
from orrery.language_model.load import load
from orrery.language_model.model import LanguageModel
from orrery.page.see import see
from orrery.recipes.config import Recipe
from orrery.recipes.read import config_hash, words_of
from orrery.reports.making import made
from orrery.runs.assemble import assemble
from orrery.runs.building import Assembled
from orrery.studies.demo.findings import DemoCorpus, DemoFindings, DemoRun, Measure, Sample
from orrery.studies.demo.floors import aims, floors
from orrery.studies.demo.heads import look, sentence_from
from orrery.studies.demo.page import page
from orrery.studies.kept import Kept, Say
from orrery.studies.training import Training, Watch
from orrery.training.folder import RUN, RunFolder, entries, open_run_folder
from orrery.training.signals import pass_on

INSIDE = "inside.html"
kept = partial(Kept, name="report", what="demo")
PROMPTS = ("The list", "Return a list of", "If the file does not exist,")
GREEDY, SAMPLED = "greedy", "sampled, temperature 0.8, top-p 0.95"
SETTINGS: dict[str, dict[str, Any]] = {GREEDY: {"temperature": 0.0}, SAMPLED: {"temperature": 0.8, "top_p": 0.95}}
NEW_TOKENS = 60


@dataclass
class TourStages:
    """Tells each stage as it ends, and keeps its seconds."""

    say: Say
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[list[str]]:
        """Time the block; what it appends to the list is told with the name."""
        began, notes = time.perf_counter(), list[str]()
        yield notes
        self.seconds[name] = round(time.perf_counter() - began, 2)
        self.say(f"{name:<11}{'; '.join(notes)} ({self.seconds[name]:.1f} s)")


def demo(recipe: Recipe, folder: Path, say: Say, watch: Watch, *, overwrite: bool = False) -> DemoFindings:
    """Run the whole demo in ``folder`` and leave its pages and the JSON file there.

    Args:
        recipe: what to train, on which text; a family, and a split that holds whole documents back.
        folder: a new or an empty one, or that of an earlier demo, which needs ``overwrite``.
        say: told a line after each stage.
        watch: makes what shows the training, once that begins.
        overwrite: replace an earlier demo, which stays until the new one has its first checkpoint.

    Raises:
        UsageError: the folder holds something else, or the recipe names no family.
        DataError: nothing is held back.
    """
    if recipe.model.family is None:
        raise UsageError("the demo saves its model in its family's layout", "give the recipe a model.family")
    with demo_folder(folder, recipe, overwrite) as run_folder:
        findings, inside = tour(recipe, run_folder, TourStages(say), watch)
        with machine_errors(folder):
            write_text(folder / INSIDE, inside)
        kept(folder).leave(findings.as_json() | mark(recipe), page(findings, made()))
    return findings


def tour(recipe: Recipe, folder: RunFolder, stages: TourStages, watch: Watch) -> tuple[DemoFindings, str]:
    """Read, train, measure, write, look; return what was found, and the page of the inside."""
    with stages.stage("text") as notes:
        settings = text_of(recipe.data, recipe.name)
        # Reading takes seconds: the identity is that of the very documents that are divided.
        documents = {part.train: read_documents(settings, part.train) for part in settings.parts}
        source = TextSource.read(settings, documents)
        train, held_back = joined(source.portions), source.held_back
        if not size(held_back):
            raise DataError("no document is held back to measure the model on", "give the demo more documents")
        identity = corpus_fingerprint(document for part in settings.parts for document in documents[part.train])
        notes += [
            f"{len(train)} documents, {size(train):,} bytes",
            f"{len(held_back)} held back, {size(held_back):,} bytes",
        ]
    with stages.stage("tokenizer") as notes:
        assembly = assemble(recipe, source)
        notes += [f"{assembly.required_tokenizer.size:,} tokens", f"the text is {assembly.train_tokens:,} of them"]
    with stages.stage("training") as notes:
        precision = learn(recipe, assembly, folder, watch)
        notes += [f"{recipe.training.steps:,} steps", precision]
    lm = load(folder.final, say=folder.log)
    with stages.stage("measuring") as notes:
        measures = measure(recipe, lm, train, held_back)
        notes.append(f"{measures[0].bits_per_byte:.3f} bits per byte on the text held back")
    with stages.stage("writing") as notes:
        samples = write(lm, prompts(recipe), recipe.seed)
        notes.append(f"{max(sample.tokens_per_second for sample in samples):,.0f} tokens/s")
    with stages.stage("looking") as notes:
        sentence = sentence_from(held_back, lm.tokenizer)
        sight, inside = look(lm, sentence), see(lm, sentence).html()
        notes.append(f"{len(sight.heads)} attention heads over {len(sight.tokens)} tokens")
    corpus = describe_corpus(recipe, identity, train, held_back, assembly.train_tokens)
    run = describe_run(recipe, folder, assembly, precision, stages.seconds)
    findings = DemoFindings(corpus, run, measures, method(recipe), samples, sight)
    lm.save(folder.final, card(findings))
    return findings, inside


def learn(recipe: Recipe, assembly: Assembled, folder: RunFolder, watch: Watch) -> str:
    """Train, leave the final model in the folder, and return the arithmetic in words.

    A signal that stopped the training ends the demo: there is nothing to go on with.
    """
    outcome = Training(recipe, assembly, folder).run(watch)
    pass_on(outcome.signal)
    return outcome.arithmetic


def measure(recipe: Recipe, lm: LanguageModel, train: list[Document], held_back: list[Document]) -> list[Measure]:
    """Return the bits per byte of the held-back text under the model, first, and under all it is compared with."""
    seen, unseen = content(train), content(held_back)
    train_ids, held_back_ids = encode(lm.tokenizer, train), encode(lm.tokenizer, held_back)
    # xz leaves the interpreter's lock to others, so that a second core counts meanwhile; the model has all of them.
    with ThreadPoolExecutor(2) as pool:
        below = pool.submit(floors, seen, unseen)
        others = aims(seen, unseen, train_ids, held_back_ids, lm.tokenizer.size)
        others = [*below.result(), *others]
    bits = model_bits_per_byte(lm.model, held_back_ids, recipe.batches.length, len(unseen), str(lm.device))
    return [Measure("this model", bits, "model"), *others]


def prompts(recipe: Recipe) -> Sequence[str]:
    """Return what the model continues: the recipe's own prompt, else those that suit Python's documentation."""
    return PROMPTS if recipe.evaluation.sample is None else (recipe.evaluation.sample,)


def write(lm: LanguageModel, prompts: Sequence[str], seed: int) -> list[Sample]:
    """Continue the prompts, each greedily and by sampling, one at a time: so is their speed that of one reader."""
    tokens = min(NEW_TOKENS, lm.context // 2)
    samples = []
    for name, settings in SETTINGS.items():
        for prompt in prompts:
            answer = lm.generations([prompt], max_new_tokens=tokens, seed=seed, truncate="left", **settings)[0]
            samples.append(Sample(prompt, answer.text, name, len(answer.ids), answer.tokens_per_second))
    return samples


def method(recipe: Recipe) -> str:
    """Return how the model was measured, in words."""
    length = recipe.batches.length
    return (
        f"Each held-back document is read from its own start, in windows of {length} tokens that begin every "
        f"{max(1, length // 2)}; every token counts exactly once, the end of the document too. The sum of their "
        "negative log probabilities, in bits, is divided by the bytes of the text."
    )


def describe_corpus(
    recipe: Recipe, identity: str, train: list[Document], held_back: list[Document], train_tokens: int
) -> DemoCorpus:
    """Return the facts of the text."""
    return DemoCorpus(
        source=recipe.data.described,
        fingerprint=identity,
        train_documents=len(train),
        held_back_documents=len(held_back),
        train_bytes=size(train),
        held_back_bytes=size(held_back),
        train_tokens=train_tokens,
    )


def describe_run(
    recipe: Recipe, folder: RunFolder, assembly: Assembled, precision: str, seconds: dict[str, float]
) -> DemoRun:
    """Return the facts of the model and its training."""
    records = folder.records()
    return DemoRun(
        folder=str(folder.path),
        family=str(recipe.model.family),
        config=recipe.model.config,
        parameters=sum(parameter.numel() for parameter in assembly.parts.model.parameters()),
        vocabulary=assembly.required_tokenizer.size,
        steps=recipe.training.steps,
        tokens=records[-1]["tokens"],
        seed=recipe.seed,
        precision=precision,
        seconds=dict(seconds),
        records=records,
    )


def card(findings: DemoFindings) -> dict[str, object]:
    """Return the facts for the model card."""
    corpus = findings.corpus
    return {
        "name": Path(findings.run.folder).name,
        "data": f"{corpus.source}, {corpus.train_bytes:,} bytes, sha256 of the corpus {corpus.fingerprint}",
        "tokens": findings.run.tokens,
        "evaluation": {f"bits per byte, {m.name}": m.bits_per_byte for m in findings.measures},
        "command": "orrery demo",
    }


@contextmanager
def demo_folder(folder: Path, recipe: Recipe, overwrite: bool) -> Iterator[RunFolder]:
    """Open the folder for a new demo; an earlier one is replaced with ``overwrite``, anything else is refused."""
    ours = made_by_demo(folder)
    if folder.is_dir() and not ours and entries(folder):
        message = f"{folder} holds something that no demo wrote"
        raise UsageError(message, "choose another folder with --output, or move this one away")
    if ours and not overwrite:
        raise UsageError(f"{folder} holds an earlier demo", "add --overwrite to replace it, or choose another --output")
    beside = (kept(folder).result.name, kept(folder).page.name, INSIDE)
    with open_run_folder(folder, overwrite=ours, inputs=words_of(recipe), beside=beside) as run_folder:
        kept(run_folder.path).note(mark(recipe))
        yield run_folder


def mark(recipe: Recipe) -> dict[str, str]:
    """Return what tells a demo's folder from others: which run in it is the demo's."""
    return {"made_by": "orrery demo", "config_hash": config_hash(recipe)}


def made_by_demo(folder: Path) -> bool:
    """Say whether the run in the folder is one that a demo made, and not one that was trained over it since."""
    try:
        report = read_json(kept(folder).result)
        run = read_json(folder / RUN) if (folder / RUN).exists() else report
    except ModelFileError:
        return False
    same = run.get("config_hash") == report.get("config_hash")
    return report.get("made_by") == "orrery demo" and same and "config_hash" in report


def content(documents: list[Document]) -> bytes:
    """Return the bytes of all documents, one after another."""
    return "".join(document.text for document in documents).encode()


def size(documents: list[Document]) -> int:
    """Return the number of bytes of all documents."""
    return sum(len(document.text.encode()) for document in documents)
