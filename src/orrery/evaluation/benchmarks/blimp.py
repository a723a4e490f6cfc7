"""BLiMP (Warstadt et al. 2020): pairs of a good and a bad sentence; the good one should be the more probable."""

from collections.abc import Mapping, Sequence

from orrery.data.corpora import read_placed_rows
from orrery.errors import DataError
from orrery.evaluation.benchmarks.choices import ChoiceQuestion, refuse_none, score_choices
from orrery.evaluation.evaluated import Done, Evaluated
from orrery.language_model.model import LanguageModel
from orrery.scores.choices import accuracy_of_groups, by_group

PARADIGMS = 67


def read_blimp(
    source: str = "blimp", first: int | None = None, paradigms: Sequence[str] = ()
) -> tuple[list[ChoiceQuestion], Mapping[str, str]]:
    """Return the pairs, of each paradigm the first so many, and the phenomenon of each paradigm.

    The rows have ``uid`` (the paradigm), ``term`` (the phenomenon), ``good`` and ``bad``; the authors' own names of
    these columns, ``UID``, ``linguistics_term``, ``sentence_good`` and ``sentence_bad``, are read too.

    Raises:
        DataError: a row is no pair, or there is no such paradigm.
    """
    questions, phenomena, counts = [], {}, dict[str, int]()
    for where, row in read_placed_rows(source):
        names = ("uid", "term", "good", "bad") if "uid" in row else _PUBLISHED
        values = [row.get(name) for name in names]
        if not all(isinstance(value, str) and value for value in values):
            raise DataError(f"{where}: no pair of sentences", f"its columns are {', '.join(names)}")
        paradigm, phenomenon, good, bad = map(str, values)
        phenomena[paradigm] = phenomenon
        counts[paradigm] = counts.get(paradigm, 0) + 1
        if (paradigm in paradigms or not paradigms) and (first is None or counts[paradigm] <= first):
            # The bad one first: of equal likelihoods the first choice counts, and that must be no right answer.
            questions.append(ChoiceQuestion(where, "", (bad, good), 1, paradigm, good, ""))
    if unknown := [name for name in paradigms if name not in phenomena]:
        raise DataError(f"{source}: no paradigm {unknown[0]}", f"there are: {', '.join(sorted(phenomena))}")
    return refuse_none(questions, source), phenomena


_PUBLISHED = ("UID", "linguistics_term", "sentence_good", "sentence_bad")


def evaluate_blimp(
    lm: LanguageModel,
    questions: Sequence[ChoiceQuestion],
    phenomena: Mapping[str, str],
    *,
    batch_size: int = 256,
    done: Done | None = None,
) -> Evaluated:
    """Compare the log probabilities of both sentences of each pair, each behind the token that begins a text.

    The score is the mean over paradigms, as in the paper; groups are paradigms, and phenomena in capital letters.
    Differs from: lm_eval, in which a pair of equal probability counts as right.
    """
    choices, _ = score_choices(lm, questions, batch_size=batch_size, done=done)
    count = len({one.group for one in choices})
    score = accuracy_of_groups(choices, "none", task="blimp", paradigms=count, pairs=len(choices))
    groups = by_group(choices, "none")
    for phenomenon in sorted(set(phenomena.values())):
        inside = [groups[name] for name in groups if phenomena.get(name) == phenomenon]
        if inside:
            mean = sum(value for value, _ in inside) / len(inside)
            groups[phenomenon.upper()] = (mean, sum(pairs for _, pairs in inside))
    details = [
        {"where": one.where, "paradigm": one.group, "nats": list(own.nats)}
        for one, own in zip(questions, choices, strict=True)
    ]
    notes = [f"{count} of {PARADIGMS} paradigms"] * (count != PARADIGMS)
    equal = [one.where for one in questions if len(set(one.choices)) == 1]
    if equal:
        # The published set has a few. In the paper's scores they count, and no model is right on them.
        notes.append(f"wrong, because both sentences are the same: {', '.join(equal)}")
    return Evaluated([score], [one.item for one in questions], details, groups, notes)
