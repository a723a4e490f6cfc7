"""A table of static vectors out, as it came: a folder of sentence-transformers, or one of model2vec."""

from pathlib import Path

from orrery.checkpoints.disk import machine_errors
from orrery.checkpoints.tensors import write_tensors
from orrery.exchange.reading.files import CONFIG, WEIGHTS
from orrery.exchange.reading.static_folder import KIND, MODEL2VEC, OTHER_TABLE, TABLE
from orrery.exchange.reading.stored import Stored
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.sentence_folder import steps_of, steps_written, write_json, write_modules, write_settings
from orrery.exchange.stored import tokenizer_of
from orrery.models.sentence_vectors import mean_of_tokens


def write_static(folder: Path, stored: Stored) -> None:
    """Write the table with a row for each token, the tokenizer, and how vectors are made.

    Raises:
        MachineError: the disk refuses.
    """
    (table,), sentences = weights_of(stored.model).values(), stored.sentences or mean_of_tokens()
    config = dict(stored.config or {})
    as_model2vec = config.get("model_type") == MODEL2VEC
    with machine_errors(folder, table.nbytes):
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer_of(stored).save(folder)
        write_tensors(folder / WEIGHTS, {OTHER_TABLE if as_model2vec else TABLE: table}, {"format": "pt"})
        if as_model2vec:
            write_json(folder / CONFIG, config)
            return
        behind = steps_of(sentences.vectors, stored.model.spec.width)[1:]  # the mean is the table's own
        write_settings(folder, sentences)
        write_modules(folder, steps_written(folder, behind), first=KIND)
