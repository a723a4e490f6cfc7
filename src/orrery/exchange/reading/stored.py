"""What a model's folder holds, once it is read."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orrery.checkpoints.stores import is_manifest, short_name
from orrery.models.model import Model
from orrery.models.pair_scores import OfVectors, PairScores
from orrery.models.sentence_vectors import Sentences, SentenceVectors
from orrery.text import Tokenizer

CHECKPOINTS, FINAL = "checkpoints", "final"
"""Folders of a run."""


@dataclass(frozen=True)
class Stored:
    """What a folder holds.

    Attributes:
        folder: where it was found.
        model: in eval mode, on the CPU, in the file's dtypes.
        family: the ``model_type``, where the folder or its run names one.
        config: the family's configuration.
        generation: the content of ``generation_config.json``.
        tokenizer: where there is one.
        chat: the chat templates by name, ``default`` the one for chats.
        kernel: how one token after another is written, see ``generation.compiled_step``.
        passed_over: keys of config.json that change no number.
        left: tensors of the file that no logits pass through.
        sentences: how vectors of texts are made, where the folder is one of sentence-transformers.
        pairs: how pairs of texts are scored, where the model has what it takes.
        pictures: the content of ``preprocessor_config.json``, of a model that reads pictures.
        rounded: what another program rounded the matrices by that are unpacked here.
        whole: the ``model_type`` of the folder, where the model is only its part that reads and writes text.
    """

    folder: Path
    model: Model
    family: str | None = None
    config: Mapping[str, Any] | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Tokenizer | None = None
    chat: Mapping[str, str] = field(default_factory=dict)
    kernel: str = "auto"
    passed_over: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    sentences: Sentences | None = None
    pairs: PairScores | None = None
    pictures: Mapping[str, Any] | None = None
    rounded: str | None = None
    whole: str | None = None

    @property
    def behind(self) -> tuple[SentenceVectors, ...]:
        """The modules that stand behind the model, where its folder has any."""
        of_pairs = self.pairs.scorer if self.pairs is not None else None
        modules = () if self.sentences is None else (self.sentences.vectors,)
        return (*modules, of_pairs.vectors) if isinstance(of_pairs, OfVectors) else modules

    @property
    def is_table(self) -> bool:
        """Whether the model is a table of tokens alone, whose rows a text has the mean of."""
        return not self.model.spec.answering.blocks

    @property
    def part_alone(self) -> str:
        """What is told of a folder of which a part is read."""
        return f"of a model that reads pictures too ({self.whole}), the part that reads and writes text alone"

    @property
    def name(self) -> str:
        """What people call the model: its run, its repository on the hub, or its folder."""
        return name_of(self.folder)


def name_of(folder: Path) -> str:
    """Return the name of the model in a folder: ``final`` and ``step-000100`` name none, the run around them does.

    It is the name by which the folder was called: a link keeps its own.
    """
    folder = Path(os.path.abspath(folder))
    if is_manifest(folder):
        return short_name(folder)
    if folder.suffix == ".gguf":
        return folder.stem
    if folder.name == FINAL:
        return folder.parent.name
    if folder.parent.name == CHECKPOINTS:
        return f"{folder.parent.parent.name}-{folder.name}"
    if folder.parent.name == "snapshots":  # the hub's cache: models--ORGANISATION--NAME/snapshots/COMMIT
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/")
    return folder.name
