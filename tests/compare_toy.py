"""A comparison without any training: one budget, or everything that can be found."""

from orrery.studies.compare.findings import BESIDE, SWEPT, Comparison, ComparisonEntry, SweepResult, Trial, points
from orrery.studies.compare.probes.table import PROBES

RECORDS = [
    {"step": 1, "tokens": 100, "tokens_per_second": 50.0},
    {"step": 2, "tokens": 200, "tokens_per_second": 100.0, "val/bpb": 4.0},
    {"step": 3, "tokens": 200, "tokens_per_second": 0.0, "val/bpb": None},
    {"step": 4, "tokens": 400, "tokens_per_second": 50.0, "val/bpb": 3.0},
]


def comparison(text="<b>&\x1b"):
    sweep = {"rates": 2, "warmups": [0.05], "share": 0.1, "trial": 1, "unit": "steps"}
    settings = {"unit": "steps", "budgets": [4], "seeds": [7], "sweep": sweep}
    keys = ("train_bytes", "train_tokens", "held_back_bytes", "held_back_tokens", "choosing_bytes", "vocabulary")
    corpus = {**dict.fromkeys(keys, 10), "source": text, "fingerprint": "0" * 64, "nats_per_bit": None}
    trained = ComparisonEntry("lstm", text, 1000, 4000, 400, 7.0, 3.0, 8.0, 4, points(RECORDS), 4, 7, SWEPT, 0.1, 0)
    counted = ComparisonEntry("ngram", text, 50, 900, 400, 0.1, 2.5, 6.0)
    return Comparison(settings, corpus, [trained, counted])


def whole():
    """A comparison that has found all there is: two budgets, a sweep, hand-set rates, and every probe."""
    filled = comparison("text")
    filled.settings = {**filled.settings, "budgets": [4, 8], "seeds": [7, 8]}
    for name, base in (("lstm", 3.0), ("gru", 3.2)):
        filled.entries += [
            ComparisonEntry(
                name, "text", 1000, 4000, 400, 7.0, base - budget / 10 + seed / 100, 8.0, 4, points(RECORDS),
                budget, seed, recipe, 0.1, 0,
            )
            for budget in (4, 8) for seed in (7, 8) for recipe in (SWEPT, BESIDE)
            if (name, budget, seed, recipe) != ("lstm", 4, 7, SWEPT)
        ]  # fmt: skip
        trials = [
            Trial(0.1, 0.05, 1, 2, 0.5, base),
            Trial(0.03, 0.05, 1, 2, 0.5, None),
            Trial(0.1, 0.0, 1, 2, 0.5, 1.0),
        ]
        filled.sweeps[name] = SweepResult(trials)
    filled.speeds["lstm"] = 5.0
    filled.probes = {name: {"lstm": {"1": 0.5, "2": 1.0}, "gru": {"1": 0.25}} for name in PROBES}
    return filled
