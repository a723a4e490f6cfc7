"""What sentence-transformers reads beside a model that scores pairs of texts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orrery.exchange.reading.cross_encoder_folder import ACTIVATION, KIND, LOGITS, SCORES, SECTION
from orrery.exchange.reading.sentence_folder import OF_TRANSFORMERS, SETTINGS, TOKENIZER
from orrery.exchange.saving.sentence_folder import steps_of, steps_written, write_json, write_modules
from orrery.models.pair_scores import OfHead, OfNextToken, OfVectors, PairScores

_LOGIT_SCORE = "1_LogitScore"
FOLDERS = (_LOGIT_SCORE,)
"""What the folders of the steps may be called, beside those of vectors."""
_TASKS = {OfHead: "sequence-classification", OfNextToken: "text-generation", OfVectors: "feature-extraction"}
_GIVES = {
    OfHead: ("logits", SCORES),
    OfNextToken: ("logits", LOGITS),
    OfVectors: ("last_hidden_state", "token_embeddings"),
}
_CLASSES = "sentence_transformers.cross_encoder.modules"


def section_of(pairs: PairScores | None) -> dict[str, Any]:
    """Return what config.json says of the scores of pairs, where it is not what is usual."""
    if pairs is None or not isinstance(pairs.scorer, OfHead) or (pairs.activation is None and not pairs.given):
        return {}
    return {SECTION: {ACTIVATION: pairs.activation_name}}


def write_pair_scores(folder: Path, pairs: PairScores, width: int) -> None:
    """Write how pairs of texts are scored, so that sentence-transformers' CrossEncoder gives the same scores.

    Args:
        folder: of the model, whose own files are there.
        pairs: how they are scored.
        width: of the model's final stream.
    """
    kind = type(pairs.scorer)
    output, name = _GIVES[kind]
    how: dict[str, Any] = {"text": {"method": "forward", "method_output_name": output}}
    rows: dict[str, Any] = {"transformer_task": _TASKS[kind], "modality_config": how, "module_output_name": name}
    if pairs.length is not None:
        rows["max_seq_length"] = pairs.length
    if pairs.lowercase:
        rows["do_lower_case"] = True
    if pairs.template is not None:
        how["message"] = {**how["text"], "format": "structured" if pairs.template.structured else "flat"}
        template_settings = {**pairs.template.variables, "add_generation_prompt": pairs.template.prompt}
        template_settings |= {"chat_template": pairs.template.source} if pairs.template.source else {}
        template_settings |= {} if pairs.template.whole_end else {"restore_suffix": False}
        rows["processing_kwargs"] = {"chat_template": template_settings}
    write_json(folder / OF_TRANSFORMERS[0], rows)
    said = {"prompts": dict(pairs.prompts), "default_prompt_name": pairs.prompt, "model_type": KIND}
    write_json(folder / SETTINGS, {**said, ACTIVATION: pairs.activation_name})
    if isinstance(pairs.scorer, OfNextToken):
        (folder / _LOGIT_SCORE).mkdir(exist_ok=True)
        ids = {"true_token_id": pairs.scorer.yes, "false_token_id": pairs.scorer.no, "module_input_name": LOGITS}
        write_json(folder / _LOGIT_SCORE / "config.json", ids)
        write_modules(folder, [(_LOGIT_SCORE, "LogitScore")], _CLASSES)
    elif isinstance(pairs.scorer, OfVectors):
        steps = steps_of(pairs.scorer.vectors, width)
        write_modules(folder, steps_written(folder, steps, {"module_output_name": SCORES}))
    else:
        write_modules(folder, [])


def tell_tokenizer(folder: Path, pairs: PairScores) -> None:
    """Write into the tokenizer's settings what transformers reads of rows there."""
    path = folder / TOKENIZER
    if not path.is_file():
        return
    config: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    settings: dict[str, Any] = {} if pairs.length is None else {"model_max_length": pairs.length}
    settings |= {"truncation_side": "left"} if pairs.from_left else {}
    settings |= {} if pairs.reads_token_types else {"model_input_names": ["input_ids", "attention_mask"]}
    write_json(path, {**config, **settings})
