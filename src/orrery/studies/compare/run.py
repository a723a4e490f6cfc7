"""A comparison: models learn the same text one after the other, each with the same budgets, and are measured alike."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from orrery.recipes.config import Recipe
from orrery.reports.making import made
from orrery.studies.compare.charts import figures
from orrery.studies.compare.findings import BESIDE, SWEPT, Comparison, ComparisonEntry, SweepResult, comparison_from
from orrery.studies.compare.learning import count, learn, measured_speed, scheduled, steps_in
from orrery.studies.compare.page import page
from orrery.studies.compare.plan import ComparisonPlan, Job, jobs, recipes
from orrery.studies.compare.probes.subject import ProbeSubject
from orrery.studies.compare.probes.table import PROBES
from orrery.studies.compare.texts import Texts, read
from orrery.studies.compare.trials import Trials
from orrery.studies.kept import TOKENIZER, Kept, Say, held, once
from orrery.studies.training import Watch, changed

kept = partial(Kept, name="compare", what="comparison")
GROWING = ("models", "seeds", "budgets", "probes")
"""What a comparison that is continued may have more or less of."""


def compare(plan: ComparisonPlan, folder: Path, say: Say, watch: Watch, *, resume: bool = False) -> Comparison:
    """Let every model learn and be measured; leave table, figures and page in ``folder`` after each.

    Args:
        plan: who is compared on what, with which budgets and seeds.
        folder: a new one, or with ``resume`` that of a comparison of the same settings.
        say: told a line at each stage.
        watch: makes what shows a training, once that begins.
        resume: keep the trials and models that are done, and go on inside the one that is not.

    Raises:
        UsageError: the plan cannot be carried out, or the folder holds something else.
        DataError: nothing is held back, or the text has changed.
    """
    plan.check()
    place = kept(folder)
    with held(folder, lambda: place.refuse_others(resume)):
        before = place.earlier(comparison_from, plan.settings(), GROWING) if resume else None
        texts = read(plan.base, folder / TOKENIZER, say)
        comparison = Comparison(plan.settings(), texts.facts(plan.base))
        begin(place, comparison, before)
        compared = recipes(plan, texts.tokenizer.size, folder / TOKENIZER)
        work = ComparisonInProgress(plan, place, texts, comparison, say, watch)
        comparison.signal = work.train_all(jobs(plan, compared))
        if comparison.signal is None:
            work.probe_all([name for name, recipe in compared.items() if name in plan.models and recipe is not None])
    return comparison


def begin(place: Kept, comparison: Comparison, before: Comparison | None) -> None:
    """Take up what an earlier call found, and note at once what this comparison is of.

    Raises:
        DataError: that was on another text.
    """
    if before is not None:
        place.refuse_moved(before.corpus, comparison.corpus)
        for name in ("entries", "sweeps", "speeds", "probes"):
            setattr(comparison, name, getattr(before, name))
    place.note(comparison.as_json())


@dataclass(frozen=True)
class ComparisonInProgress:
    """A comparison under way: what is done goes into ``comparison``, and from there to the folder at once."""

    plan: ComparisonPlan
    place: Kept
    texts: Texts
    comparison: Comparison
    say: Say
    watch: Watch

    def train_all(self, work: Sequence[Job]) -> int | None:
        """Do every training that is not done; return the number of the signal that stopped it, if one did."""
        for job in work:
            done = self.comparison.done(*job.key)
            do, keep = partial(self._trained, job, job.recipe), partial(self._keep, job)
            if stopped := once(f"{job.name}{told(job)}", done, do, keep, self.say):
                return stopped
        return None

    def _keep(self, job: Job, entry: ComparisonEntry) -> str:
        """Write down what a training reached, and return it in words."""
        self.comparison.entries.append(entry)
        self._leave()
        return f"{entry.bits_per_byte:.3f} bits per byte after {entry.seconds:.1f} s{off_budget(entry, job)}"

    def _trained(self, job: Job, recipe: Recipe | None) -> ComparisonEntry | int:
        """Settle rate, warm-up and steps of a training, by a sweep first where that is due, and do it."""
        if recipe is None:
            return count(self.texts, self.say)
        seeded = changed(recipe, seed=job.seed)
        if job.rate_from == SWEPT and (stopped := self._sweep(changed(recipe, seed=self.plan.seeds[0]))):
            return stopped
        assert job.budget is not None
        steps = steps_in(job.budget, recipe, self._speed(recipe))
        ready = scheduled(seeded, steps)
        if job.rate_from in (SWEPT, BESIDE):
            best = self.comparison.sweeps[job.name].best
            swept = scheduled(seeded, steps, best.rate, best.warmup)
            if job.rate_from == BESIDE and swept == ready:  # the sweep has chosen what was set by hand
                return replace(self._twin(job), recipe=BESIDE)
            ready = swept if job.rate_from == SWEPT else ready
        return learn(job, ready, self.texts, self.place.path / job.place, self.say, self.watch)

    def _twin(self, job: Job) -> ComparisonEntry:
        """Return the training of the same model, budget and seed at the swept rate, which comes first."""
        key = replace(job, rate_from=SWEPT).key
        return next(entry for entry in self.comparison.entries if entry.key == key)

    def _sweep(self, recipe: Recipe) -> int | None:
        """Do the trials of a model that are not done; return the number of the signal that stopped it."""
        sweep = self.plan.sweep
        assert sweep is not None
        result = self.comparison.sweeps.setdefault(recipe.name, SweepResult())
        budget = max(self.plan.budgets).part(sweep.share)
        trials = Trials(recipe, sweep, budget, self._speed(recipe), self.texts, self.place.path / recipe.name)
        return trials.run(result, self.say, self.watch, self._note)

    def _speed(self, recipe: Recipe) -> float:
        """Return the tokens a second that budgets of time become steps by, measured once for each model."""
        if self.plan.budgets[0].unit == "steps":
            return 0.0
        if recipe.name not in self.comparison.speeds:
            self.say(f"{recipe.name}: measuring its speed")
            seconds = max(self.plan.budgets).seconds / 20
            self.comparison.speeds[recipe.name] = measured_speed(recipe, self.texts, seconds)
            self._note()
        return self.comparison.speeds[recipe.name]

    def _note(self) -> None:
        self.place.note(self.comparison.as_json())

    def _leave(self) -> None:
        self.place.leave(self.comparison.as_json(), page(self.comparison, made()), figures(self.comparison))

    def probe_all(self, names: Sequence[str]) -> None:
        """Do every probe of every model that is not done."""
        for kind in self.plan.probing.names:
            done = self.comparison.probes.setdefault(kind, {})
            for name in names:
                if name not in done:
                    self.say(f"{kind}: {name}")
                    done[name] = PROBES[kind].run(self._subject(name))
                    self._leave()

    def _subject(self, name: str) -> ProbeSubject:
        """Return what a probe is told of a model; its run is that of the greatest budget and the first seed."""
        best = Job(name, None, max(self.plan.budgets), self.plan.seeds[0], self.plan.rate_from(name))
        return ProbeSubject(
            name, self.plan, self.place.path / best.place, self.texts.tokenizer.size, self.texts.held_back_ids
        )


def told(job: Job) -> str:
    """Return the budget and the seed of a training, in brackets."""
    if job.budget is None:
        return ""
    return f" ({job.budget.label}, seed {job.seed}{', hand-set rate' if job.rate_from == BESIDE else ''})"


def off_budget(entry: ComparisonEntry, job: Job) -> str:
    """Return a warning where a model had a fifth more or less time than its budget: the machine did other things."""
    seconds = 0.0 if job.budget is None else job.budget.seconds
    if not seconds or abs(entry.seconds / seconds - 1) < 0.2:
        return ""
    return f", not {seconds:g}: the machine's speed changed, so compare by tokens"
