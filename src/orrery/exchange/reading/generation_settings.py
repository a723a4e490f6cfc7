"""How a model wants to write: ``generation_config.json``, or the same keys of an older ``config.json``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orrery.errors import ModelFileError
from orrery.families import _generation_keys as generation_keys
from orrery.generation.constraints import Constraints
from orrery.generation.search import HuggingFacePenalty, LengthPenalty
from orrery.schema.writing import DRAWING, SETTINGS, at, beams_of

LEGACY_KEYS = tuple(sorted((generation_keys.FOLLOWED | generation_keys.REFUSED) - {*generation_keys.CONTROL}))
"""The keys that old configurations have beside those of the architecture."""

_SOUND: Mapping[str, Callable[[Any], bool]] = {
    "repetition_penalty": SETTINGS["repetition_penalty"].sound,
    "stop_strings": lambda value: all(isinstance(one, str) and one for one in ([value] if value == "" else value)),
}
"""What a value of the right kind must be besides, where nothing that follows it would refuse it."""


@dataclass(frozen=True)
class Wishes:
    """What a model's files say of writing; what a caller says counts before it.

    Attributes:
        settings: the keys, checked, those that are null left out.
    """

    settings: Mapping[str, Any]

    def constraints(self, end: frozenset[int]) -> Constraints:
        """Return which tokens may be chosen; ``end`` are the ids that end a text."""
        last = self.settings.get("forced_eos_token_id", ())
        phrases = (tuple(ids) for ids in self.settings.get("bad_words_ids", ()))
        return Constraints(
            end=end,
            first=self.settings.get("forced_bos_token_id"),
            last=tuple(last) if isinstance(last, list) else (last,) if last != () else (),
            least_row=self.settings.get("min_length", 0),
            least_answer=self.settings.get("min_new_tokens", 0),
            never=tuple(self.settings.get("suppress_tokens", ())),
            never_first=tuple(self.settings.get("begin_suppress_tokens", ())),
            phrases=tuple(ids for ids in phrases if ids and ids != tuple(end)),
            once=self.settings.get("no_repeat_ngram_size", 0),
            repeated=self.settings.get("repetition_penalty", 1),
        )

    @property
    def sampling(self) -> dict[str, Any]:
        """How a token is drawn; without ``do_sample`` the most probable one is taken."""
        if not self.settings.get("do_sample"):
            return {"temperature": 0, **self.always}
        return {name: self.settings.get(name, SETTINGS[name].about.unsaid) for name in DRAWING}

    @property
    def always(self) -> dict[str, Any]:
        """What counts in the choice of each token, whether or not it is drawn."""
        return {name: self.settings.get(name) for name in DRAWING if not SETTINGS[name].about.drawn}

    def longest(self, before: int, usual: int) -> int:
        """Return the most tokens of an answer behind ``before`` tokens of its row."""
        if "max_new_tokens" in self.settings:
            return int(self.settings["max_new_tokens"])
        limit = self.settings.get("max_length")
        return usual if limit is None else max(1, int(limit) - before)

    @property
    def stop(self) -> tuple[str, ...]:
        """The strings that end an answer."""
        said = self.settings.get("stop_strings", ())
        return (said,) if isinstance(said, str) else tuple(said)

    @property
    def beams(self) -> int:
        """How many hypotheses are followed."""
        return beams_of(self.settings)

    @property
    def penalty(self) -> LengthPenalty | HuggingFacePenalty:
        """By what the scores of beams are divided."""
        alpha = self.settings.get("length_penalty")
        return LengthPenalty() if alpha is None else HuggingFacePenalty(alpha)


def wishes_of(generation: Mapping[str, Any], config: Mapping[str, Any]) -> Wishes:
    """Return what ``generation_config.json`` says, or where there is none, the old keys of ``config.json``.

    Raises:
        ModelFileError: a value of another kind than its key's, or a demand that Orrery cannot meet.
    """
    settings = {key: value for key, value in (generation or old_keys(config)).items() if value is not None}
    for key in settings.keys() & at("file").keys():
        value, known = settings[key], SETTINGS[key]
        if not known.is_one(value) or (key in _SOUND and not _SOUND[key](value)):
            raise ModelFileError(f"{key} = {str(value)[:40]!r} makes no sense", "correct generation_config.json")
    if beyond := generation_keys.not_followed(settings):
        said = ", ".join(f"{key} = {str(settings[key])[:40]!r}" for key in beyond)
        raise ModelFileError(
            f"{said}: not built, and the reference would write something else for it",
            f"remove {' and '.join(beyond)} from generation_config.json (or an old config.json) to write without",
        )
    return Wishes(settings)


def as_file(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the generation_config.json that an old ``config.json`` stands for; nothing if it does not say how."""
    control = {key: config[key] for key in generation_keys.CONTROL if config.get(key) is not None}
    said = {key: value for key, value in old_keys(config).items() if value is not None}
    return {**control, **said} if said else {}


def old_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a configuration that choose how to write; a captioner's may stand in its decoder's part."""
    part = config.get("decoder")
    inner = part if isinstance(part, Mapping) else {}
    settings = {key: config.get(key, inner.get(key)) for key in LEGACY_KEYS if key in config or key in inner}
    if config.get("force_bos_token_to_be_generated") and settings.get("forced_bos_token_id") is None:
        settings["forced_bos_token_id"] = config.get("bos_token_id")
    return settings
