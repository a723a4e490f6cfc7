"""The page of a ladder: findings in, one HTML file out that needs nothing but a browser."""

from collections.abc import Mapping

from orrery.reports.making import Making
from orrery.reports.page import Heading, document, figure, rows_table, section
from orrery.studies.ladder.charts import figures
from orrery.studies.ladder.findings import LadderFindings
from orrery.studies.ladder.forecast import LEVEL, Forecast
from orrery.studies.ladder.summary import LAWS, SIZES, law_rows, outcome, passes, size_rows

LAW_NOTE = (
    "L = E + A / x^alpha (Henighan et al. 2020), fitted by Huber's loss of logarithms (Hoffmann et al. 2022, appendix "
    "D.2) to all trainings but that of the largest size. In brackets: {level} intervals, of coefficients from the laws "
    "fitted to resampled residuals, of the prediction with the spread of a single training. Miss: predicted over "
    "measured, less one."
)
SIZE_NOTE = (
    "Parameters are those of the blocks; operations are counted, those of head and attention too. The planned time is "
    "from the speed of a few steps before the first training, evaluations not counted. With several seeds: the mean, "
    "and the standard deviation behind \u00b1."
)


def page(ladder: LadderFindings, predictions: Mapping[str, Forecast], making: Making) -> str:
    """Return the whole page; the same findings give the same bytes."""
    note = f"Each dot is a training. The band holds {LEVEL:.0%} of trainings, by the law and its resampled residuals."
    parts = (
        section("The law", "\n".join(figure(svg, note) for svg in figures(ladder, predictions).values())),
        section(
            "What it tells", rows_table(LAWS, law_rows(predictions)) + f"<p>{LAW_NOTE.format(level=f'{LEVEL:.0%}')}</p>"
        ),
        section("The sizes", rows_table(SIZES, size_rows(ladder)) + f"<p>{SIZE_NOTE}</p>"),
        section("Facts", rows_table(("", ""), facts(ladder))),
    )
    about = (f"{len(ladder.sizes)} sizes", str(ladder.corpus["source"]))
    heading = Heading("ladder", "A scaling ladder", about, f"{outcome(ladder, predictions)}.")
    return document(heading, parts, making)


def facts(ladder: LadderFindings) -> list[tuple[str, str]]:
    """Return what was trained on what."""
    corpus, rules = ladder.corpus, ladder.settings["ladder"]
    kept = sorted(set.intersection(*(set(size["config"].items()) for size in ladder.sizes)))
    return [
        ("text", f"{corpus['source']}: {corpus['train_bytes']:,} bytes, {corpus['train_tokens']:,} tokens"),
        ("measured on", f"{corpus['measured_bytes']:,} bytes, {corpus['measured_tokens']:,} tokens held back"),
        ("fingerprint", f"sha256 {corpus['fingerprint']}"),
        ("vocabulary", f"{corpus['vocabulary']:,} tokens"),
        ("tokens a parameter", f"{rules['tokens_per_parameter']:g}"),
        ("tokens of the largest", f"{passes(ladder):,.2f} times those of the text"),
        ("learning rate", f"falls with the parameters N as N^-{rules['rate_exponent']:g}"),
        ("seeds", ", ".join(map(str, rules["seeds"]))),
        ("the same at all sizes", ", ".join(f"{key} {value}" for key, value in kept)),
        *(
            (f"{size['parameters']:,} parameters", ", ".join(f"{k} {v}" for k, v in own(size, kept)))
            for size in ladder.sizes
        ),
    ]


def own(size: Mapping[str, object], kept: list[tuple[str, object]]) -> list[tuple[str, object]]:
    """Return the keys of a size in which it differs from others."""
    config = size["config"]
    assert isinstance(config, Mapping)
    return [item for item in config.items() if item not in kept]
