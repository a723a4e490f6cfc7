"""The probes of a comparison by name: how each measures a model, and how what it found is drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orrery.errors import UsageError
from orrery.reports.figures import line_chart
from orrery.studies.compare.probes import costs, extrapolation, learned
from orrery.studies.compare.probes.subject import Curve, ProbeSubject


@dataclass(frozen=True)
class Probe:
    """One measurement of every model, a curve each."""

    run: Callable[[ProbeSubject], Curve]
    title: str
    x_label: str
    y_label: str
    note: str
    log_x: bool = True
    log_y: bool = False

    def figure(self, by_model: Mapping[str, Curve]) -> str | None:
        """Return the curves as SVG; nothing where there is no point."""
        series = {name: [(float(x), y) for x, y in curve.items()] for name, curve in by_model.items() if curve}
        if not series:
            return None
        return line_chart(
            series, title=self.title, x_label=self.x_label, y_label=self.y_label, log_x=self.log_x, log_y=self.log_y
        )


_TRAINED = "Two layers of about 60,000 parameters, the better of two rates; mean over the seeds."

PROBES: Mapping[str, Probe] = {
    "training_speed": Probe(
        costs.training_speed,
        "Speed of training by length",
        "tokens of a row",
        "tokens a second",
        "A forward and a backward pass of a new model of the full size, the median of three.",
        log_y=True,
    ),
    "decoding_speed": Probe(
        costs.decoding_speed,
        "Speed of decoding by length",
        "tokens before",
        "tokens a second",
        "One row, written token by token by a new model of the full size.",
        log_y=True,
    ),
    "memory": Probe(
        costs.memory,
        "Memory of decoding by length",
        "tokens before",
        "kilobytes",
        "What a decoding session of one row holds: keys and values, or states.",
        log_y=True,
    ),
    "recall": Probe(
        learned.recall, "Associative recall", "pairs to be kept", "part recalled", f"Keys ask for values. {_TRAINED}"
    ),
    "induction": Probe(
        learned.induction,
        "Induction: a random text that comes again",
        "place in the repeat",
        "part that is right",
        f"Nothing tells the model where the repeat begins but its tokens. {_TRAINED}",
        log_x=False,
    ),
    "copying": Probe(
        learned.copying,
        "Copying",
        "tokens of the text",
        "part copied",
        f"Texts of up to {max(learned.TEXTS)} tokens are learned; the last place is longer. {_TRAINED}",
    ),
    "extrapolation": Probe(
        extrapolation.extrapolation,
        "Loss beyond the length of training",
        "place in the row",
        "bits a token",
        "The trained models, on text held back; rows of four training lengths, the mean of half a length a point.",
        log_x=False,
    ),
}


def chosen(words: str | None) -> Sequence[str]:
    """Return the probes that a flag names: ``all`` (the default), ``none``, or names with commas between.

    Raises:
        UsageError: there is no such probe, or one is named twice.
    """
    if words in (None, "all"):
        return tuple(PROBES)
    if words == "none":
        return ()
    names = tuple(name.strip() for name in (words or "").split(","))
    for name in names:
        if name not in PROBES or names.count(name) > 1:
            fault = "named twice" if name in PROBES else "no probe"
            raise UsageError(f"--probes: {name!r} is {fault}", f"there are: all, none, {', '.join(PROBES)}")
    return names
