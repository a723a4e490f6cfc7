"""Rules that a document must pass: a measure of its text between two bounds, or a pattern; and what they dropped."""

import math
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from orrery.data.cleaning.measures import MEASURES
from orrery.data.corpora import Document
from orrery.errors import UsageError

EXAMPLES = 3
LONGEST_LINE = 1000
SECONDS = 5.0


@runtime_checkable
class FilterRule(Protocol):
    """What decides on documents, one after another."""

    @property
    def name(self) -> str:
        """What the rule is called in the table of what was dropped."""
        ...

    def __call__(self, number: int, document: Document) -> str | None:
        """Return why the document, the ``number``-th from 1, is dropped; None if it stays."""
        ...


@dataclass(frozen=True)
class Between:
    """The rule that a measure of the text lies between two bounds, both of which still pass."""

    name: str
    low: int | float = -math.inf
    high: int | float = math.inf

    def __call__(self, number: int, document: Document) -> str | None:
        """Return the value and the bound it breaks; None for a text that keeps both."""
        value = MEASURES[self.name](document.text)
        if value < self.low:
            return f"{value:.4g}, at least {self.low:g} asked"
        return f"{value:.4g}, at most {self.high:g} allowed" if value > self.high else None


def _at_most(**bounds: int | float) -> tuple[Between, ...]:
    return tuple(Between(name, high=bound) for name, bound in bounds.items())


QUALITY = (
    Between("words", 50, 100_000),
    Between("mean_word_length", 3, 10),
    *_at_most(hash_ratio=0.1, ellipsis_ratio=0.1, bullet_lines=0.9, ellipsis_lines=0.3),
    Between("words_with_letters", 0.8),
    Between("stop_words", 2),
)
REPETITION = _at_most(
    duplicate_lines=0.3,
    duplicate_paragraphs=0.3,
    duplicate_line_characters=0.2,
    duplicate_paragraph_characters=0.2,
    top_2_grams=0.2,
    top_3_grams=0.18,
    top_4_grams=0.16,
    duplicate_5_grams=0.15,
    duplicate_6_grams=0.14,
    duplicate_7_grams=0.13,
    duplicate_8_grams=0.12,
    duplicate_9_grams=0.11,
    duplicate_10_grams=0.1,
)
SETS: Mapping[str, tuple[Between, ...]] = {
    "gopher": QUALITY + REPETITION,
    "gopher-quality": QUALITY,
    "gopher-repetition": REPETITION,
}
"""Named rules: those of Gopher, for English text (Rae et al. 2021, appendix A1.1 and Table A1)."""


class Matching:
    """The rule that no line matches a regular expression, tried on the first 1,000 characters of each line.

    Raises `UsageError` for what is no expression, and for one that takes longer than ``seconds`` on a text:
    nested repeats such as ``(a+)+`` can need ages (watched in the main thread of systems with timers only).
    """

    def __init__(self, pattern: str, seconds: int | float = SECONDS) -> None:
        self.name = f"matches {pattern}"
        self._seconds = seconds
        try:
            self._pattern = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(
                f"{pattern!r} is not a regular expression: {error}", "Python's re describes them"
            ) from None

    def __call__(self, number: int, document: Document) -> str | None:
        """Return what matched; None if nothing does."""
        with _time_limit(self._seconds, f"{self._pattern.pattern!r} on {document.name}"):
            for line in document.text.splitlines():
                if match := self._pattern.search(line[:LONGEST_LINE]):
                    return f"{match[0][:40]!r}"
        return None


class Filtered:
    """The documents that every rule lets pass, in order; while it is read it counts what was dropped and why.

    A document goes to the rules in their order, and the first one that drops it counts.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        rules: Sequence[FilterRule],
        dropped: Callable[[Document, str, str], None] = lambda document, rule, why: None,
    ) -> None:
        self._documents, self._rules, self._tell = documents, rules, dropped
        self.read = self.kept = self.characters_read = self.characters_kept = 0
        self.reasons: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}

    def __iter__(self) -> Iterator[Document]:
        for document in self._documents:
            self.read += 1
            self.characters_read += len(document.text)
            if self._passes(document):
                self.kept += 1
                self.characters_kept += len(document.text)
                yield document

    def _passes(self, document: Document) -> bool:
        for rule in self._rules:
            why = rule(self.read, document)
            if why is not None:
                self.reasons[rule.name] += 1
                examples = self.examples.setdefault(rule.name, [])
                if len(examples) < EXAMPLES:
                    examples.append(f"{document.name}: {why}")
                self._tell(document, rule.name, why)
                return False
        return True

    def table(self) -> list[tuple[str, str, str, str]]:
        """Return the rows (what, documents, share, examples): what was kept, and what each rule dropped."""
        rows = [("kept", self.kept, f"{self.characters_kept:,} of {self.characters_read:,} characters")]
        rows += [(name, self.reasons[name], "; ".join(self.examples.get(name, []))) for name in self._names()]
        share = max(self.read, 1) / 100
        return [(name, f"{count:,}", f"{count / share:.1f} %", text) for name, count, text in rows]

    def _names(self) -> list[str]:
        return [name for name in dict.fromkeys(rule.name for rule in self._rules) if self.reasons[name]]


def parse_rules(text: str) -> list[Between]:
    """Read ``gopher,characters=100:,mean_word_length=3:10``: named sets, and measures with their bounds.

    Raises `UsageError` that lists what there is.
    """
    rules: list[Between] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, bounds = part.partition("=")
        if not equals and name in SETS:
            rules += SETS[name]
        elif equals and name in MEASURES:
            rules.append(_bounded(name, bounds))
        else:
            known = f"the sets are {', '.join(SETS)}; measures with bounds, as words=50:1000, are {', '.join(MEASURES)}"
            raise UsageError(f"{part!r} is no filter", known)
    return rules


def _bounded(name: str, bounds: str) -> Between:
    low, colon, high = bounds.partition(":")
    try:
        between = Between(name, float(low or -math.inf), float(high or math.inf))
    except ValueError:
        between = None
    if between is None or not colon or not between.low <= between.high:
        raise UsageError(f"{name}={bounds}: not two bounds", f"write {name}=LOW:HIGH, either of which may be left out")
    return between


@contextmanager
def _time_limit(seconds: int | float, what: str) -> Iterator[None]:
    """Stop what runs too long: the matching of a pattern looks for signals now and then."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise UsageError(f"the pattern {what} takes over {seconds:g} s", "avoid repeats within repeats, as in (a+)+")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
