"""Which heads the ``architectures`` entry of an encoder means, what they are made of, and their names in old files."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orrery.checkpoints.rules import Rule, rename
from orrery.errors import ModelFileError
from orrery.families._config import Config
from orrery.families._keys import count, items, table, text
from orrery.nn.elementwise import Activation, Projection
from orrery.nn.heads import LanguageModelHead, Pooler, SequenceHead, TokenHead
from orrery.nn.residual import Chain, Dropout
from orrery.nn.spec import ModuleSpec

DEFAULTS: Mapping[str, Any] = {
    "architectures": items(),
    "id2label": table(),
    "num_labels": count(None),
    "problem_type": text("", null=True),
}
"""The keys that this reader uses; a family adds them to its own."""

PURPOSES: Mapping[str, tuple[str, ...]] = {
    "Model": ("pooled",),
    "ForMaskedLM": ("masked",),
    "ForPreTraining": ("masked", "next"),
    "ForNextSentencePrediction": ("next",),
    "ForSequenceClassification": ("sequence",),
    "ForTokenClassification": ("token",),
    "ForQuestionAnswering": ("span",),
}
"""The names of the heads behind the end of a class's name, the main one first; a bare model may have none."""

EACH_TOKEN = (("classifier", "token.labels"), ("qa_outputs", "span.labels"))
"""The names of the heads for every token in the files of nearly every family, and ours."""

_ENDS = ("weight", "bias")
_PROBLEMS = {name: name for name in ("single_label_classification", "multi_label_classification", "regression")}


def purpose(config: Mapping[str, Any], architecture: str) -> str:
    """Return what a model is for: its class in ``config.json``, by default ``architecture``, without the family.

    Raises:
        ModelFileError: a class of another family, or one that is not known.
    """
    family = architecture.removesuffix("ForMaskedLM")
    named = (config.get("architectures") or [architecture])[0]
    if not named.startswith(family) or named.removeprefix(family) not in PURPOSES:
        raise ModelFileError(
            f"the architecture {named!r} is not known", f"known: {', '.join(family + end for end in PURPOSES)}"
        )
    return str(named.removeprefix(family))


def base(config: Mapping[str, Any], architecture: str, prefix: str) -> str:
    """Return what the names of the stack begin with: ``bert.``, and nothing in the files of a bare model."""
    return "" if purpose(config, architecture) == "Model" else prefix


def choose(
    c: Config,
    architecture: str,
    heads: Mapping[str, ModuleSpec],
    purposes: Mapping[str, tuple[str, ...]] = PURPOSES,
) -> dict[str, ModuleSpec]:
    """Return the heads that a configuration asks for, among those of the family.

    Raises:
        ModelFileError: the family has no such head.
    """
    end = purpose({"architectures": c["architectures"]}, architecture)
    if end == "Model":
        return {name: heads[name] for name in purposes[end] if name in heads}
    if lacking := [name for name in purposes[end] if name not in heads]:
        raise ModelFileError(f"{c.family} has no head {lacking[0]!r}, which {end} asks for", "is it another family's?")
    if "span" in purposes[end] and labels(c) != 2:
        raise ModelFileError(
            f"{c.family}: {labels(c)} labels (num_labels, id2label) for {end}, whose two are where an answer begins "
            "and where it ends",
            "the reference cannot run such a model either; remove the keys if the head has two rows",
        )
    return {name: heads[name] for name in purposes[end]}


def without_pooler(spec: Any) -> Any:
    """Return an architecture without the pooler, where that is its only head: bare files may lack it."""
    heads = getattr(spec, "heads", None)
    return replace(spec, heads={}) if heads and heads.keys() == {"pooled"} else spec


def labels(c: Config) -> int:
    """Return the number of labels of a configuration: those it names, else the number it gives, else two.

    Raises:
        ModelFileError: it names none, or another number than it gives.
    """
    named, counted = c["id2label"], c["num_labels"]
    if named == {}:
        raise ModelFileError(f"{c.family}: id2label is empty", "name the labels, or leave the key out for two")
    if counted and _is_unnamed(named):
        return int(counted)  # old files count their labels and leave two names that nobody gave
    if named and counted and len(named) != counted:
        raise ModelFileError(
            f"{c.family}: num_labels = {counted}, but id2label names {len(named)}", "keep the one that fits the weights"
        )
    return len(named or ()) or counted or 2


def _is_unnamed(labels: Any) -> bool:
    """Say whether a configuration has the names alone that transformers gives to two labels without any."""
    return labels == {"0": "LABEL_0", "1": "LABEL_1"}


def named(c: Config) -> dict[str, Any]:
    """Return what a configuration says of its labels: how many there are, and their names in order.

    Raises:
        ModelFileError: the names are not numbered from 0, or one is no text.
    """
    names_by_number = {int(key) if str(key).isdecimal() else key: name for key, name in (c["id2label"] or {}).items()}
    if set(names_by_number) != set(range(len(names_by_number))) or not all(
        isinstance(name, str) for name in names_by_number.values()
    ):
        message = (
            f"{c.family}: id2label = {str(c['id2label'])[:60]} does not name the labels 0 to {len(names_by_number) - 1}"
        )
        raise ModelFileError(message, "get the file again from its source")
    names = tuple(names_by_number[number] for number in range(len(names_by_number)))
    usual = tuple(f"LABEL_{number}" for number in range(len(names)))
    return {"labels": labels(c), "names": () if names == usual else names}


def of_row(c: Config) -> dict[str, Any]:
    """Return the same with the kind of problem, for a head that answers for the whole row."""
    return {**named(c), "problem": c.choose("problem_type", _PROBLEMS) if c["problem_type"] else ""}


def transform(width: int, activation: str, *after: ModuleSpec, bias: bool = True) -> Chain.Spec:
    """Return what comes before a product with the labels: ``act(W x + b)``, often a norm after it."""
    return Chain.Spec(parts=(Projection.Spec(width=width, bias=bias), Activation.Spec(activation=activation), *after))


def masked(c: Config, width: int, activation: str, norm: ModuleSpec) -> LanguageModelHead.Spec:
    """Return BERT's masked language model: a transform, a norm and the embedding table with a bias of its own."""
    return LanguageModelHead.Spec(
        vocabulary=c["vocab_size"],
        tied=c["tie_word_embeddings"],
        bias=True,
        transform=transform(width, activation, norm),
    )


def answers(c: Config, dropout: float, pooler: ModuleSpec) -> dict[str, ModuleSpec]:
    """Return the heads that every family has alike: a class for the row, one for each token, a span's two ends.

    ``pooler`` transforms the first token for the class of the row; ``dropout`` comes before the labels.
    """
    dropped = Dropout.Spec(rate=dropout)
    return {
        "sequence": SequenceHead.Spec(pooler=Pooler.Spec(transform=Chain.Spec(parts=(pooler, dropped))), **of_row(c)),
        "token": TokenHead.Spec(transform=dropped, **named(c)),
        "span": TokenHead.Spec(labels=2),
    }


def rules_of(pairs: Iterable[tuple[str, str]]) -> tuple[Rule, ...]:
    """Return the rules that the linear map ``a`` of a file is ``heads.b``, for every pair (a, b)."""
    return tuple(rename(f"{theirs}.{end}", f"heads.{ours}.{end}") for theirs, ours in pairs for end in _ENDS)


def masked_rules(theirs: str, dense: str, norm: str, *, tied: bool) -> tuple[Rule, ...]:
    """Return the rules of a masked language model's head.

    Untied, transformers keeps two biases, of which it reads the decoder's alone. Ours is written as both.
    """
    return (
        *rules_of(((f"{theirs}.{dense}", "masked.transform.0.linear"), (f"{theirs}.{norm}", "masked.transform.2"))),
        rename(f"{theirs}.decoder.weight", "heads.masked.vocabulary.weight"),
        rename(f"{theirs}.bias", "heads.masked.vocabulary.bias"),
        *(() if tied else (rename(f"{theirs}.decoder.bias", "heads.masked.vocabulary.bias"),)),
    )


def old_bias(theirs: str, *, tied: bool) -> dict[str, str | None]:
    """Return the old name of a tied head's bias, which some files keep beside the other."""
    return {f"^{re.escape(theirs)}\\.decoder\\.bias$": f"{theirs}.bias"} if tied else {}


def old(prefix: str, heads: Iterable[str], rules: Sequence[Rule]) -> dict[str, str | None]:
    """Return what an encoder's ``LEGACY_NAMES`` says, given its heads and the rules of its files.

    Files of the first years call a norm's tensors gamma and beta and keep numbered places beside the weights. A file
    may also hold heads that its configuration does not name, as the published BERT does its pooler: they are left.
    A bare model may stand under the names of a whole one.
    """
    used, others = set[str](), set[str]()
    for rule in rules:
        part, _, rest = rule.ours[0].partition(".")
        if part == "heads":
            (used if rest.partition(".")[0] in set(heads) else others).add(rule.theirs)
    bare = not any(rule.theirs.startswith(prefix) for rule in rules)
    return {
        r"\bgamma$": "weight",
        r"\bbeta$": "bias",
        r"\b(position|token_type)_ids$": None,
        **({f"^{re.escape(prefix)}": ""} if bare else {}),
        **{f"^{re.escape(name)}$": None for name in sorted(others - used)},
    }
