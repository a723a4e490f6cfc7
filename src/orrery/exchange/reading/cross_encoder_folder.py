"""How a folder scores two texts: the files of sentence-transformers' cross-encoders, of every version."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from orrery.checkpoints.json_file import read_json
from orrery.errors import ModelFileError
from orrery.exchange.reading.config_keys import read_config
from orrery.exchange.reading.files import CONFIG
from orrery.exchange.reading.sentence_folder import (
    HINT,
    MODULES,
    TOKENIZER,
    VECTOR,
    length_of,
    mapping_in,
    modules_of,
    pooling_of,
    prompts_of,
    rows_of,
    settings_of,
    step_of,
    transformer_in,
)
from orrery.exchange.reading.stored import Stored
from orrery.models.pair_scores import IDENTITY, OfHead, OfNextToken, OfVectors, PairScores, PairTemplate, Scorer
from orrery.models.sentence_vectors import Dense, SentenceVectors
from orrery.nn.heads import SequenceHead
from orrery.text.chat.folder import DEFAULT

KIND = "CrossEncoder"
SECTION, ACTIVATION = "sentence_transformers", "activation_fn"
OLD_ACTIVATION = "sbert_ce_default_activation_function"
"""The key of config.json before version 4, in the place of a section."""
CONFIG_KEYS = (SECTION, OLD_ACTIVATION)
"""What of a config.json is read here and nowhere else."""
SCORES, LOGITS = "scores", "causal_logits"
_USUAL = "sequence"
_STRUCTURED = ("content[0]", ".type", "'type'", '"type"', "message.content[")
"""What a template that reads contents as lists of parts has in it, as sentence-transformers tells."""
_FLAT = ("apertus", "deepseek_v3", "gpt_oss", "seed_oss")
"""Families whose templates have one of these for another reason."""
_OF_PAIRS = re.compile(r"""['"](query|document)['"]""")
_OF_ROWS = ("padding", "truncation", "max_length", "return_tensors", "tokenize", "return_dict")


def is_cross_encoder(folder: Path) -> bool:
    """Say whether a folder with a list of modules scores pairs; others make vectors.

    Raises:
        ModelFileError: a file is damaged.
    """
    if settings_of(folder).get("model_type") == KIND:
        return True
    kinds = [kind for kind, _ in modules_of(folder)]
    return kinds == ["Transformer"] or "LogitScore" in kinds


def read_pair_scores(folder: Path, stored: Stored) -> PairScores | None:
    """Return how a model scores pairs of texts; None where neither a head nor a file says so.

    Args:
        folder: where the model was found.
        stored: what was read there.

    Raises:
        ModelFileError: a file of a cross-encoder is damaged, or says what is not built; it is named.
    """
    listed = (folder / MODULES).is_file()
    if listed and not is_cross_encoder(folder):
        return None
    model = transformer_in(folder) or folder
    own, said = (rows_of(model), settings_of(folder)) if listed else ({}, {})
    scorer = _listed(folder, stored) if listed else _scorer_of(stored)
    if scorer is None:
        return None
    prompts, chosen = prompts_of(folder, said)
    of_texts = read_json(model / TOKENIZER) if (model / TOKENIZER).is_file() else {}
    inputs = of_texts.get("model_input_names")
    processor_settings = mapping_in(own, "processing_kwargs", model)
    activation = said[ACTIVATION] if isinstance(said.get(ACTIVATION), str) else _activation(model, stored, scorer)
    return PairScores(
        scorer,
        activation,
        length_of(model, own),
        from_left=of_texts.get("truncation_side") == "left",
        prompts=prompts,
        prompt=chosen,
        lowercase=bool(own.get("do_lower_case", False)),
        reads_token_types="token_type_ids" in (inputs if isinstance(inputs, list) else _usual_inputs(of_texts)),
        template=_template(stored, own, processor_settings, model) if listed else _usual_template(stored),
        given=listed,
    )


def _usual_inputs(of_texts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return which inputs are marked where none are named: not those of a class that is transformers 5's for any."""
    return () if of_texts.get("tokenizer_class") == "TokenizersBackend" else ("token_type_ids",)


def _activation(model: Path, stored: Stored, scorer: Scorer) -> str | None:
    """Return what config.json says of the activation, where it says anything.

    A folder in our own layout has none, and its head knows whether it was taught numbers.
    """
    if not (model / CONFIG).is_file():
        head = stored.model.spec.heads.get(scorer.name) if isinstance(scorer, OfHead) else None
        return IDENTITY if getattr(head, "problem", "") == "regression" else None
    config = read_config(model)
    section = config.get(SECTION)
    named = section.get(ACTIVATION) if isinstance(section, Mapping) else None
    activation = config.get(OLD_ACTIVATION) if named is None else named
    return activation if isinstance(activation, str) else None


def _scorer_of(stored: Stored) -> Scorer | None:
    """Return the scorer of a folder without a list of modules."""
    spec, heads = stored.model.spec, stored.model.spec.heads
    if spec.vocabulary is None or spec.reads_source or stored.tokenizer is None:
        return None
    fit = [name for name, head in heads.items() if isinstance(head, SequenceHead.Spec) and name != "next"]
    if fit:
        name = _USUAL if _USUAL in fit else fit[0]
        head: Any = heads[name]
        return OfHead(name, head.labels)
    if not spec.writes or not _says_pairs(stored):
        return None
    yes, no = (stored.tokenizer.id(word) for word in ("yes", "no"))
    if yes is None or no is None:
        return None
    return OfNextToken(yes, no)


def _says_pairs(stored: Stored) -> bool:
    """Say whether the template of the chats is one of pairs: it names both of their roles."""
    return set(_OF_PAIRS.findall(stored.chat.get(DEFAULT, ""))) == {"query", "document"}


def _usual_template(stored: Stored) -> PairTemplate | None:
    """Return the template of a folder that does not say how texts are told: that of its chats where it is of pairs."""
    if not _says_pairs(stored):
        return None
    return PairTemplate(structured=_is_structured(stored, stored.chat[DEFAULT]))


def _is_structured(stored: Stored, source: str) -> bool:
    return stored.family not in _FLAT and any(part in source for part in _STRUCTURED)


def _listed(folder: Path, stored: Stored) -> Scorer:
    """Return the scorer that a list of modules makes."""
    _, *steps = modules_of(folder)
    if not steps:
        scorer = _scorer_of(stored)
        if not isinstance(scorer, OfHead):
            raise ModelFileError(f"{folder / MODULES} has no module behind a Transformer without classes", HINT)
        return scorer
    kind, place = steps[0]
    if kind == "LogitScore" and len(steps) == 1:
        return _next_token(place, stored)
    if kind != "Pooling":
        raise ModelFileError(f"{place}: a module {kind} of a cross-encoder is not built", HINT)
    modules = [step_of(kind, place, (VECTOR, SCORES)) for kind, place in steps[1:]]
    last = next((module for module in reversed(modules) if isinstance(module, Dense)), None)
    if last is None or (read_json(steps[-1][1] / "config.json").get("module_output_name")) != SCORES:
        raise ModelFileError(f"{folder / MODULES} ends in no Dense that gives scores", HINT)
    pooling = pooling_of(read_json(place / "config.json"), place)
    chain: list[nn.Module] = modules
    return OfVectors(SentenceVectors(pooling, chain).eval(), last.linear.out_features)


def _next_token(place: Path, stored: Stored) -> OfNextToken:
    config = read_json(place / "config.json")
    yes, no = config.get("true_token_id"), config.get("false_token_id")
    size = stored.model.spec.vocabulary or 0
    if not all(type(id) is int and 0 <= id < size for id in (yes, no) if id is not None) or yes is None:
        raise ModelFileError(f"{place / 'config.json'}: {str((yes, no))[:60]} are no tokens of the model", HINT)
    if config.get("module_input_name", LOGITS) != LOGITS or not stored.model.spec.writes:
        raise ModelFileError(f"{place / 'config.json'}: it reads no logits of a language model", HINT)
    return OfNextToken(yes, no)


def _template(
    stored: Stored, own: Mapping[str, Any], processor_settings: Mapping[str, Any], model: Path
) -> PairTemplate | None:
    """Return the template that the transformer's settings ask for; texts alone are told by the tokenizer."""
    how = mapping_in(own, "modality_config", model)
    if "message" not in how:
        return None
    given = dict(mapping_in(processor_settings, "chat_template", model))
    named = given.pop("chat_template", DEFAULT)
    source = stored.chat.get(named, named if named != DEFAULT else None)
    if not isinstance(source, str):
        raise ModelFileError(f"{model} has no chat template, and its pairs are messages", HINT)
    form = mapping_in(how, "message", model).get("format", "auto")
    return PairTemplate(
        source,
        structured=_is_structured(stored, source) if form == "auto" else form == "structured",
        prompt=bool(given.pop("add_generation_prompt", False)),
        whole_end=bool(given.pop("restore_suffix", True)),
        variables={key: value for key, value in given.items() if key not in _OF_ROWS},
    )
