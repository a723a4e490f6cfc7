"""How to write: every setting once, with its type, range, meaning, and what follows it; all doors are made from this.

A setting is a line of one of the groups below. From it come the arguments of ``lm.generate``, the flags of the command
line, the fields of requests, the settings of pipelines, the keys of recipes and of ``generation_config.json``, and the
table of the documentation. Nothing here needs more than the standard library.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from numbers import Integral, Real
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, TypedDict, Union, get_args, get_origin, get_type_hints

from orrery.errors import UsageError

Door = Literal["python", "flag", "http", "translate", "pipeline", "recipe", "file"]
"""Methods of a model; the command line; requests that write; ``/v1/translate``; pipelines; recipes;
``generation_config.json``.
"""

EVERY: tuple[Door, ...] = ("python", "flag", "http", "pipeline", "recipe", "file")
CALLED: tuple[Door, ...] = ("python", "flag")
SAVED: tuple[Door, ...] = ("pipeline", "recipe", "file")
ASKED: tuple[Door, ...] = ("pipeline", "file")
"""Keys of files that a pipeline takes for one call and that no recipe has."""

MOST = 10_000
"""What may be added to a logit or taken from it: far more than logits differ by, and no number overflows."""
MOST_BACK = 1 << 20
"""Tokens that a penalty may look back at."""
MOST_TOKENS = 2**31 - 1
UNBOUNDED = float("inf")


@dataclass(frozen=True)
class About:
    """What is said of a setting beside its name and its type.

    Attributes:
        help: what it does.
        least: the least number that it may be.
        most: the greatest one; never infinite.
        above: whether it must be more than ``least``.
        note: what one of its numbers means.
        off: values beside nothing at all that ask for nothing.
        idle: those that ask for nothing where answers are searched for, where these are others.
        filter: what follows it where a token is chosen, called with its value and those of ``beside``.
        beside: settings that mean nothing without this one.
        drawn: whether it counts only where tokens are drawn.
        searched: whether a search over beams follows it.
        doors: where it can be said.
        foreign: whether transformers has it too, as a key of ``generation_config.json``.
        unsaid: what a ``generation_config.json`` that does not say it means.
        flag: what the command line calls it, where that is another word.
        source: where it comes from.
    """

    help: str
    least: float | int = -UNBOUNDED
    most: float | int = UNBOUNDED
    above: bool = False
    note: str = ""
    off: tuple[Any, ...] = ()
    idle: tuple[Any, ...] = ()
    filter: str = ""
    beside: tuple[str, ...] = ()
    drawn: bool = False
    searched: bool = False
    doors: tuple[Door, ...] = EVERY
    foreign: bool = True
    unsaid: Any = None
    flag: str = ""
    source: str = ""


_FILTERS = "orrery.generation.filters"


class Drawing(TypedDict, total=False):
    """How a token is chosen. What counts in every choice comes before what counts in draws, each in this order."""

    temperature: Annotated[
        float | None,
        About(
            "Divides the logits: below 1 the probable tokens gain, above 1 the improbable ones; 0 is greedy.",
            least=0, note="0 is greedy", off=(0,), idle=(0, 1), filter=f"{_FILTERS}:Temperature", drawn=True,
            unsaid=1.0, source="Ackley et al. 1985",
        ),
    ]  # fmt: skip
    top_k: Annotated[
        int | None,
        About(
            "Keeps so many of the most probable tokens; 0 or -1 keeps all.",
            least=-1, most=MOST_TOKENS, note="0 and -1 set no limit", off=(0, -1), filter=f"{_FILTERS}:TopK",
            drawn=True, unsaid=50, source="Fan et al. 2018",
        ),
    ]  # fmt: skip
    top_p: Annotated[
        float | None,
        About(
            "Keeps the fewest tokens whose probabilities reach it together (nucleus).",
            least=0, most=1, above=True, off=(1,), filter=f"{_FILTERS}:TopP", drawn=True, source="Holtzman et al. 2020",
        ),
    ]  # fmt: skip
    min_p: Annotated[
        float | None,
        About(
            "Keeps tokens at least so many times as probable as the first one.",
            least=0, most=1, off=(0,), filter=f"{_FILTERS}:MinP", drawn=True, source="Nguyen et al. 2024",
        ),
    ]  # fmt: skip
    typical_p: Annotated[
        float | None,
        About(
            "Keeps the fewest tokens that are about as surprising as expected, and whose probabilities reach it "
            "together.",
            least=0, most=1, above=True, off=(1,), filter=f"{_FILTERS}:TypicalP", drawn=True,
            source="Meister et al. 2023",
        ),
    ]  # fmt: skip
    logit_bias: Annotated[
        Mapping[int, float | int] | None,
        About(
            "Is added to the logits of some ids: 100 chooses a token, -100 forbids it.",
            least=-MOST, most=MOST, note="-100 forbids a token", off=({},), filter=f"{_FILTERS}:LogitBias.of",
            foreign=False, source="OpenAI's interface",
        ),
    ]  # fmt: skip
    repetition_penalty: Annotated[
        float | None,
        About(
            "Above 1 makes tokens that the text holds already less probable.",
            least=0, above=True, note="1 changes nothing", off=(1,), filter=f"{_FILTERS}:RepetitionPenalty",
            beside=("repetition_window",), searched=True, source="Keskar et al. 2019",
        ),
    ]  # fmt: skip
    repetition_window: Annotated[
        int | None,
        About(
            "How many of the last tokens the penalty of repetitions counts; all of them where it is left out.",
            least=1, most=MOST_BACK, foreign=False, source="repeat_last_n of llama.cpp",
        ),
    ]  # fmt: skip
    presence_penalty: Annotated[
        float | None,
        About(
            "Is taken from the logit of each token of the answer.",
            least=-MOST, most=MOST, note="0 changes nothing", off=(0,), filter=f"{_FILTERS}:PresencePenalty",
            foreign=False, source="OpenAI's interface",
        ),
    ]  # fmt: skip
    frequency_penalty: Annotated[
        float | None,
        About(
            "Is taken from the logit of a token once for each time that the answer holds it.",
            least=-MOST, most=MOST, note="0 changes nothing", off=(0,), filter=f"{_FILTERS}:FrequencyPenalty",
            foreign=False, source="OpenAI's interface",
        ),
    ]  # fmt: skip


class Form(TypedDict, total=False):
    """What an answer must be."""

    bad_words: Annotated[
        str | Sequence[str] | None,
        About(
            "A string that must not stand in the answer, however tokens cut it; several may be given.",
            doors=(*CALLED, "http"), off=((), "", []), flag="bad_word",
        ),
    ]  # fmt: skip
    regex: Annotated[str | None, About("A regular expression that the whole answer matches.", doors=CALLED)]
    json_schema: Annotated[
        Mapping[str, Any] | None, About("A JSON schema that the answer follows; {} is any object.", doors=CALLED)
    ]
    grammar: Annotated[
        str | None,
        About("A context-free grammar, in the notation of Lark, that the answer follows.", doors=CALLED),
    ]


class Search(TypedDict, total=False):
    """How answers are searched for instead of drawn."""

    num_beams: Annotated[
        int | None,
        About(
            "How many hypotheses a search for the answer of the greatest score follows; 1 is no search.",
            least=1, most=MOST_TOKENS, off=(1,), searched=True, doors=(*CALLED, "translate", *SAVED),
            source="Wu et al. 2016",
        ),
    ]  # fmt: skip
    length_penalty: Annotated[
        float | None,
        About(
            "Of beams: 0 favours short answers, the Transformer's paper used 0.6; in files and pipelines as Hugging "
            "Face's, above 0 favours long ones.",
            least=0, most=60, searched=True, doors=(*CALLED, "translate", *SAVED), source="Wu et al. 2016",
        ),
    ]  # fmt: skip
    num_beam_groups: Annotated[
        int | None,
        About(
            "Above 1, groups of beams that avoid each other's choices; the best of each comes first.",
            least=1, most=MOST_TOKENS, off=(1,), searched=True, doors=CALLED, source="Vijayakumar et al. 2018",
        ),
    ]  # fmt: skip
    diversity_penalty: Annotated[
        float | None,
        About(
            "What a choice of an earlier group costs a later one, in nats.",
            least=0, searched=True, doors=CALLED, source="Vijayakumar et al. 2018",
        ),
    ]  # fmt: skip
    coverage_penalty: Annotated[
        float | None,
        About(
            "Of encoder-decoders: ranks answers lower that leave a part of the source out; Wu et al. 2016 used 0.2.",
            least=0, off=(0,), searched=True, doors=CALLED, source="Wu et al. 2016",
        ),
    ]  # fmt: skip
    beyond_source: Annotated[
        int | None,
        About(
            "The most tokens of an answer beyond those of its source, where that is fewer; the paper had 50.",
            least=1, most=MOST_TOKENS, searched=True, doors=CALLED, source="Vaswani et al. 2017",
        ),
    ]  # fmt: skip
    answers: Annotated[
        int | None,
        About(
            "How many answers are shown, the best first.",
            least=1, most=MOST_TOKENS, off=(1,), searched=True, doors=CALLED,
        ),
    ]  # fmt: skip
    early_stopping: Annotated[
        bool | Literal["never"] | None,
        About("Whether a search ends with as many whole answers as beams.", searched=True, doors=ASKED),
    ]
    num_return_sequences: Annotated[
        int | None,
        About("How many answers are returned.", least=1, most=MOST_TOKENS, searched=True, doors=ASKED),
    ]


class Length(TypedDict, total=False):
    """How long an answer is, and where it ends."""

    max_new_tokens: Annotated[
        int | None,
        About("The most tokens of an answer.", least=1, most=MOST_TOKENS, searched=True, doors=(*CALLED, *SAVED)),
    ]
    min_new_tokens: Annotated[
        int | None,
        About(
            "The fewest tokens of an answer.",
            least=0, most=MOST_TOKENS, off=(0,), searched=True, doors=("flag", *SAVED),
        ),
    ]  # fmt: skip
    max_length: Annotated[
        int | None,
        About(
            "The most tokens of a row, prompt and answer together.",
            least=1, most=MOST_TOKENS, searched=True, doors=ASKED,
        ),
    ]  # fmt: skip
    min_length: Annotated[
        int | None,
        About(
            "The fewest tokens of a row, prompt and answer together.",
            least=0, most=MOST_TOKENS, off=(0,), searched=True, doors=ASKED,
        ),
    ]  # fmt: skip
    stop: Annotated[
        str | Sequence[str] | None,
        About(
            "A string that ends the answer and does not belong to it; several may be given.",
            off=((), "", []), doors=(*CALLED, "http"),
        ),
    ]  # fmt: skip
    stop_strings: Annotated[str | list[str] | None, About("The same, in files.", off=((), "", []), doors=ASKED)]
    eos_token_id: Annotated[int | list[int] | None, About("The tokens that end an answer.", searched=True, doors=ASKED)]


class Tokens(TypedDict, total=False):
    """Which tokens may be chosen at all."""

    no_repeat_ngram_size: Annotated[
        int | None,
        About(
            "The length of runs of tokens that come at most once.",
            least=0, most=MOST_TOKENS, off=(0,), searched=True, doors=("flag", *SAVED),
        ),
    ]  # fmt: skip
    bad_words_ids: Annotated[
        list[list[int]] | None, About("Runs of tokens that are never completed.", searched=True, doors=ASKED)
    ]
    suppress_tokens: Annotated[list[int] | None, About("Tokens that are never chosen.", searched=True, doors=ASKED)]
    begin_suppress_tokens: Annotated[
        list[int] | None, About("Tokens that begin no answer.", searched=True, doors=ASKED)
    ]
    forced_bos_token_id: Annotated[
        int | None, About("The token that an answer begins with.", least=0, searched=True, doors=ASKED)
    ]
    forced_eos_token_id: Annotated[
        int | list[int] | None, About("The tokens that close the longest answer.", searched=True, doors=ASKED)
    ]
    do_sample: Annotated[
        bool | None, About("Whether tokens are drawn; else the most probable one is taken.", off=(False,), doors=SAVED)
    ]


class Writing(Drawing, Form, total=False):
    """What says how an answer to one text is drawn, and what it must be."""


GROUPS = (Drawing, Form, Search, Length, Tokens)


@dataclass(frozen=True)
class Setting:
    """A setting as all doors see it.

    Attributes:
        name: what it is called.
        group: the kind of settings that it is one of.
        type: its values, ``None`` not among them.
        about: what else is said of it.
    """

    name: str
    group: str
    type: Any
    about: About = field(repr=False)

    @property
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return self.type is int

    @property
    def number(self) -> bool:
        """Whether it is a number at all."""
        return self.type in (int, float)

    def is_one(self, value: Any) -> bool:
        """Say whether a value as JSON has it is of the setting's type, whatever its range."""
        kinds = _plain_kinds(self.type)
        return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))

    @property
    def allowed(self) -> str:
        """The numbers that it may be, in words."""
        low, high = (f"{bound:,.10g}" for bound in (self.about.least, self.about.most))
        if self.about.most >= MOST_TOKENS:
            words = f"above {low}" if self.about.above else f"at least {low}"
        else:
            words = f"above {low} and at most {high}" if self.about.above else f"from {low} to {high}"
        return f"{words}; {self.about.note}" if self.about.note else words

    @property
    def keyed(self) -> bool:
        """Whether it is a number for each of some tokens."""
        return get_args(self.type)[:1] == (int,) and get_origin(self.type) is Mapping

    def sound(self, value: Any) -> bool:
        """Say whether a value is a number of its kind and in its range."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        least, most = self.about.least, self.about.most
        try:
            number = float(value)
        except OverflowError:
            return False
        return least <= number <= most and abs(number) < UNBOUNDED and not (self.about.above and number == least)

    def is_off(self, value: Any) -> bool:
        """Say whether a value asks for nothing."""
        return value is None or value in self.about.off

    def plain(self, value: Any) -> Any:
        """Return a value as files have it: of several that ask for nothing the first, ids as numbers."""
        if self.keyed and value is not None:
            return {int(id): one for id, one in value.items()}
        return self.about.off[0] if value is not None and value in self.about.off else value

    def refuse(self, value: Any) -> None:
        """Refuse a number outside the range, or of no token, by the words that every door has.

        Raises:
            UsageError: it is.
        """
        if value is None or not (self.number or self.keyed):
            return
        for name, one in (self._each(value) if self.keyed else {self.name: value}).items():
            if not self.sound(one):
                raise UsageError(f"{name} = {str(one)[:60]} is not possible", f"it must be {self.allowed}")

    def _each(self, value: Any) -> dict[str, Any]:
        """Return the numbers of tokens by what errors call them."""
        for id in value if isinstance(value, Mapping) else [value]:
            if isinstance(id, bool) or not re.fullmatch("[0-9]{1,9}", str(id)) or not isinstance(value, Mapping):
                raise UsageError(f"{self.name} has no token {str(id)[:40]!r}", "give a number for each id, from 0")
        return {f"{self.name} of {id}": one for id, one in value.items()}


def _plain_kinds(kind: Any) -> tuple[type, ...]:
    """Return the types that a setting's values have in JSON."""
    if get_origin(kind) in (Union, UnionType):
        return tuple(plain for one in get_args(kind) for plain in _plain_kinds(one))
    if get_origin(kind) is Literal:
        return tuple({type(one) for one in get_args(kind)})
    return {float: (int, float), Mapping: (dict,)}.get(get_origin(kind) or kind, (get_origin(kind) or kind,))


def _settings() -> Iterator[Setting]:
    for group in GROUPS:
        for name, hint in get_type_hints(group, include_extras=True).items():
            given, about = get_args(hint)
            yield Setting(name, group.__name__, _without_none(given), about)


def _without_none(given: Any) -> Any:
    kinds = [kind for kind in get_args(given) if kind is not type(None)]
    if get_origin(given) not in (Union, UnionType):
        return given
    return reduce(or_, kinds)


SETTINGS: Mapping[str, Setting] = {one.name: one for one in _settings()}
DRAWING = tuple(name for name, one in SETTINGS.items() if one.group == "Drawing")
DEMANDS = tuple(name for name, one in SETTINGS.items() if one.group == "Form")


def at(door: Door) -> dict[str, Setting]:
    """Return the settings that can be said at a door."""
    return {name: one for name, one in SETTINGS.items() if door in one.about.doors}


def said(settings: Any, door: Door) -> dict[str, Any]:
    """Return those of an object's attributes that are settings of a door and have a value."""
    values = {name: getattr(settings, name) for name in at(door)}
    return {name: value for name, value in values.items() if value is not None}


def refuse_with_beams(**settings: Any) -> None:
    """Refuse settings of drawing beside beams, which draw nothing.

    Raises:
        UsageError: one of them is given.
    """
    given = [name for name, value in settings.items() if not _idle(name, value)]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be used with num_beams", "search with beams, or draw tokens")


def _idle(name: str, value: Any) -> bool:
    """Say whether a setting, or another argument of the same call, asks for nothing that a search lacks."""
    known = SETTINGS.get(name)
    if known is None:
        return value in (None, (), "", [])
    return known.about.searched or known.is_off(value) or value in known.about.idle


def beams_of(settings: Mapping[str, Any], usual: int = 1) -> int:
    """Return how many hypotheses settings ask for; more than one is a search."""
    said = settings.get("num_beams")
    return usual if said is None else int(said)


def is_searched(settings: Mapping[str, Any]) -> bool:
    """Say whether settings ask for a search over several beams."""
    return beams_of(settings) > 1


def fault_of(settings: Mapping[str, Any]) -> str | None:
    """Return why settings cannot go together, if so."""
    if is_searched(settings) and (settings.get("do_sample") or settings.get("repetition_penalty") not in (None, 1)):
        return "num_beams above 1 goes with neither do_sample nor repetition_penalty"
    if (settings.get("min_new_tokens") or 0) > (settings.get("max_new_tokens") or UNBOUNDED):
        return "min_new_tokens is more than max_new_tokens"
    return None


def greedy(max_new_tokens: int, **others: Any) -> dict[str, Any]:
    """Return the keys that have the likeliest answer to a row followed, whatever the model's files say.

    ``others`` are keys besides, or in the place of these.
    """
    return {"max_new_tokens": max_new_tokens, "num_beams": 1, "do_sample": False, **others}


BEAMS = 4
"""Hypotheses that a translation or a summary follows where nothing is said."""
OF_SOURCE: Mapping[str, Any] = {"max_new_tokens": 256, "num_beams": BEAMS}
"""How an encoder-decoder's pipeline writes where neither the caller nor the model's files say anything."""
