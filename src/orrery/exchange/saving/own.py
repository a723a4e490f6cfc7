"""Saving a model in our own layout, which holds every architecture and every transform: spec.json and our names."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orrery.checkpoints import manifest
from orrery.checkpoints.disk import machine_errors
from orrery.checkpoints.store import MODEL, SPEC
from orrery.checkpoints.tensors import write_tensors
from orrery.exchange.reading.architecture import CONFIGURATION, FAMILY
from orrery.exchange.reading.files import GENERATION, PICTURES
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.save import SavesItself, text_writer, write_all
from orrery.models.model import Model
from orrery.text.chat.folder import write_templates
from orrery.tuning import describe


def save_own(
    folder: str | Path,
    model: Model,
    tokenizer: SavesItself | None = None,
    *,
    family: str | None = None,
    config: Mapping[str, Any] | None = None,
    generation: Mapping[str, Any] | None = None,
    chat: Mapping[str, str] | None = None,
    pictures: Mapping[str, Any] | None = None,
) -> None:
    """Write spec.json, the weights under our own names, a manifest, and what belongs to the model beside them.

    Every file is complete under its name or not there; the manifest, without which files that do not belong together
    would load, is the last. Loading gives the same bytes back, and the same transforms.

    Args:
        folder: made where it is missing.
        model: its tensors are written in the dtype that they have, a tied one once.
        tokenizer: written beside the weights.
        family: the ``model_type`` that the model can be saved as once its transforms are merged.
        config: the family's configuration.
        generation: the content of generation_config.json.
        chat: chat templates by name.
        pictures: the content of preprocessor_config.json, of a model that reads pictures.

    Raises:
        UsageError: the model has a tensor that its architecture and its transforms do not describe.
        MachineError: the disk refuses.
    """
    folder, tensors = Path(folder), weights_of(model)
    published = {} if family is None else {FAMILY: family, CONFIGURATION: dict(config or {})}
    spec = json.dumps({**describe(model), **published}, indent=1) + "\n"
    with machine_errors(folder, sum(tensor.nbytes for tensor in tensors.values())):
        folder.mkdir(parents=True, exist_ok=True)
        if tokenizer is not None:
            tokenizer.save(folder)
        write_templates(folder, chat or {})
        records: dict[str, manifest.FileRecord] = {}

        def recorded(name: str, write: Callable[[Path], object]) -> Callable[[Path], None]:
            def writer(path: Path) -> None:
                write(path)
                records[name] = manifest.FileRecord(path.stat().st_size, manifest.file_sha256(path))

            return writer

        writers: dict[str, Callable[[Path], object]] = {
            MODEL: recorded(MODEL, lambda path: write_tensors(path, tensors)),
            SPEC: recorded(SPEC, text_writer(spec)),
        }
        if generation:
            writers[GENERATION] = text_writer(json.dumps(generation, indent=2) + "\n")
        if pictures is not None:
            writers[PICTURES] = text_writer(json.dumps(pictures, indent=2) + "\n")
        writers[manifest.NAME] = lambda path: path.write_text(manifest.manifest_text(records), encoding="utf-8")
        write_all(folder, writers)
