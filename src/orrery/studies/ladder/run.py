"""A scaling ladder carried out: the smaller sizes trained, a law fitted, the largest predicted, and then trained."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orrery.data.documents import Portion
from orrery.data.sources.text import TextSource
from orrery.errors import RunError, UsageError
from orrery.reports.making import made
from orrery.studies.compare.learning import TRIAL_STEPS, time_and_tokens
from orrery.studies.compare.texts import Ids, Texts, read
from orrery.studies.kept import TOKENIZER, Kept, Say, held, once
from orrery.studies.ladder.charts import figures
from orrery.studies.ladder.findings import LadderFindings, LadderRun, findings_from
from orrery.studies.ladder.forecast import forecasts
from orrery.studies.ladder.page import page
from orrery.studies.ladder.settings import Ladder
from orrery.studies.ladder.sizes import LadderSize, sizes_of
from orrery.studies.ladder.summary import foretold, outcome, planned
from orrery.studies.training import Training, Watch, changed, speed, training_in

kept = partial(Kept, name="ladder", what="scaling ladder")
TIMED = 100_000
"""Characters of text that the speed of a size is measured on."""


def train_ladder(ladder: Ladder, folder: Path, say: Say, watch: Watch, *, resume: bool = False) -> LadderFindings:
    """Train every size; leave what is known in ``folder`` after each, and the prediction before the largest.

    Args:
        ladder: the recipe and its sizes.
        folder: a new one, or with ``resume`` that of the same ladder.
        say: told a line at each stage.
        watch: makes what shows a training, once that begins.
        resume: keep the trainings that are done, and go on inside the one that is not.

    Raises:
        UsageError: the sizes cannot be trained, or the folder holds something else, or a ladder of other settings.
        DataError: nothing is held back, or the text has changed.
        RunError: a training came apart.
    """
    place = kept(folder)
    with held(folder, lambda: place.refuse_others(resume)):
        before = place.earlier(findings_from, ladder.as_json()) if resume else None
        texts = read(ladder.base, folder / TOKENIZER, say)
        sizes = sizes_of(ladder, texts.tokenizer.size, folder / TOKENIZER)
        if before is not None:
            place.refuse_moved(before.corpus, measured_on(ladder, texts))
            refuse_other_sizes(before, sizes)
            findings = before
        else:
            findings = begun(ladder, texts, sizes, say)
            say(planned(findings))
        leave(place, findings)
        work = LadderInProgress(ladder, place, texts, findings, say, watch)
        findings.signal = work.train_all(sizes)
    return findings


def refuse_other_sizes(before: LadderFindings, sizes: Sequence[LadderSize]) -> None:
    """Raise ``UsageError`` where the sizes are counted otherwise, as by another version of the program."""
    known = [{key: value for key, value in one.items() if key != "planned_seconds"} for one in before.sizes]
    if known != [size.as_json() for size in sizes]:
        message = "--resume: the sizes are not those that this ladder began with"
        raise UsageError(message, "take the version of the program that it was begun with, or begin again")


def leave(place: Kept, findings: LadderFindings) -> None:
    """Write what is known so far: JSON, and with a law the figures and the page."""
    predictions = forecasts(findings)
    values = findings.as_json() | {"forecasts": {axis: one.as_json() for axis, one in predictions.items()}}
    if predictions:
        place.leave(values, page(findings, predictions, made()), figures(findings, predictions))
    else:
        place.note(values)


def rehearse(ladder: Ladder, say: Say) -> LadderFindings:
    """Return the sizes with the seconds that each would take; a few steps are timed, and nothing is kept."""
    with TemporaryDirectory() as place:
        texts = read(ladder.base, Path(place) / TOKENIZER, say)
        sizes = sizes_of(ladder, texts.tokenizer.size, Path(place) / TOKENIZER)
        return begun(ladder, texts, sizes, say)


def begun(ladder: Ladder, texts: Texts, sizes: Sequence[LadderSize], say: Say) -> LadderFindings:
    """Return what is known before the first training."""
    say(f"timing {len(sizes)} sizes")
    timed = [{**size.as_json(), "planned_seconds": planned_seconds(size, texts)} for size in sizes]
    return LadderFindings(ladder.as_json(), measured_on(ladder, texts), timed)


def measured_on(ladder: Ladder, texts: Texts) -> dict[str, Any]:
    """Return the facts of the text, and how much of what is held back is read."""
    chosen = held_back(texts, ladder.settings.held_back)
    return {
        **texts.facts(ladder.base),
        "measured_tokens": sum(map(len, chosen.ids)),
        "measured_bytes": chosen.bytes,
    }


def planned_seconds(size: LadderSize, texts: Texts) -> float:
    """Return the seconds that one training takes, at the speed of a few steps on a little of the text."""
    return size.tokens / speed(size.recipe, shortened(texts.source), TRIAL_STEPS)


def shortened(source: TextSource) -> TextSource:
    """Return the first documents of a text, which are encoded in no time."""
    portions = []
    for portion in source.portions:
        documents, left = [], TIMED
        for document in portion.documents:
            if left > 0:
                documents.append(document)
                left -= len(document.text)
        portions.append(Portion(portion.name, portion.weight, documents))
    return TextSource(portions, [document for document in source.held_back if document.text][:1], source.mixed)


@dataclass(frozen=True)
class LadderHeldBack:
    """The documents that the loss is measured on, and their bytes."""

    ids: Sequence[Ids]
    bytes: int


def held_back(texts: Texts, tokens: int) -> LadderHeldBack:
    """Return documents at even distances that have about so many tokens; all of them where they have fewer.

    Where those are short ones, of less than half so many, they lie closer together.
    """
    documents = zip(texts.source.held_back, texts.held_back_ids, strict=True)
    documents_with_text = [(document, ids) for document, ids in documents if document.text]
    widest = max(1, round(texts.held_back_tokens / tokens))
    parts = (documents_with_text[::stride] for stride in range(widest, 0, -1))
    chosen = next((part for part in parts if 2 * sum(len(ids) for _, ids in part) >= tokens), documents_with_text)
    return LadderHeldBack([ids for _, ids in chosen], sum(len(document.text.encode()) for document, _ in chosen))


@dataclass(frozen=True)
class LadderInProgress:
    """A ladder under way: what is done goes into ``findings``, and from there to the folder at once."""

    ladder: Ladder
    place: Kept
    texts: Texts
    findings: LadderFindings
    say: Say
    watch: Watch

    def train_all(self, sizes: Sequence[LadderSize]) -> int | None:
        """Do every training that is not done; return the number of the signal that stopped it, if one did."""
        for number, size in enumerate(sizes, start=1):
            last = number == len(sizes)
            if last:
                self.say(foretold(self.findings, forecasts(self.findings)))
            for seed in self.ladder.settings.seeds[: 1 if last else None]:
                label = f"size {number} of {len(sizes)}, {size.parameters:,} parameters, seed {seed}"
                done = self.findings.done(size.parameters, seed)
                if stopped := once(label, done, partial(self._trained, label, size, seed), self._keep, self.say):
                    return stopped
        self.say(outcome(self.findings, forecasts(self.findings)))
        return None

    def _keep(self, run: LadderRun) -> str:
        """Write down what a training reached, and return it in words."""
        self.findings.runs.append(run)
        leave(self.place, self.findings)
        return f"{run.loss:.4f} nats a token after {run.seconds:.1f} s"

    def _trained(self, label: str, size: LadderSize, seed: int) -> LadderRun | int:
        """Train and measure one model; return the number of the signal that stopped it, if one did."""
        self.say(f"{label}: {size.steps:,} steps, {size.tokens:,} tokens, rate {size.rate:.3g}")
        place = self.place.path / f"{size.name}-seed-{seed}"
        with training_in(changed(size.recipe, seed=seed), self.texts.source, place) as training:
            if stopped := training.run(self.watch).signal:
                return stopped
            _, seconds = time_and_tokens(training.folder.records())
            return self._measured(training, size, seed, seconds)

    def _measured(self, training: Training, size: LadderSize, seed: int, seconds: float) -> LadderRun:
        chosen = held_back(self.texts, self.ladder.settings.held_back)
        tokens = sum(map(len, chosen.ids))
        bits = training.bits_per_byte(chosen.ids, tokens)
        if not 0 < bits < math.inf:
            message = f"{size.parameters:,} parameters, seed {seed}: the loss of the text held back is {bits:g}"
            raise RunError(message, "give a lower training.optimizer.rate, and another folder with --output")
        return LadderRun(size.parameters, seed, bits * math.log(2), bits * tokens / chosen.bytes, round(seconds, 3))
