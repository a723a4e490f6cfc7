"""The ranker in files beside the model: numbers in safetensors, words and names in JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orrery.checkpoints.disk import machine_errors, replace, write_text
from orrery.checkpoints.json_file import read_json
from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.data.many_labels.features import TfIdf
from orrery.errors import ModelFileError
from orrery.exchange.saving.beside import RANKER
from orrery.tasks.xbert.linear import Block
from orrery.tasks.xbert.ranker import Ranker
from orrery.tasks.xbert.words import ClustersByWords, encoder_alone

NUMBERS, NAMES = RANKER
VERSION = 2
"""The first had nothing of clusters by words."""
LIMIT = 1_000_000_000
"""Bytes of the names: a million labels and words take less."""


@dataclass(frozen=True)
class SavedRanker:
    """A ranker with what it reads and says.

    Attributes:
        labels: what each label is called.
        features: the words that are counted.
        ranker: the classifiers of each cluster.
        length: tokens of a row in training.
        words: how likely each cluster is by the words.
    """

    labels: list[str]
    features: TfIdf
    ranker: Ranker
    length: int
    words: ClustersByWords


def save(folder: Path, saved: SavedRanker) -> None:
    """Write a ranker into the folder of its model.

    Raises:
        MachineError: there is no room.
    """
    members, blocks = saved.ranker.members, saved.ranker.blocks
    arrays: dict[str, Any] = {
        "members": np.concatenate(members),
        "member_counts": np.array([len(each) for each in members]),
        "columns": np.concatenate([each.columns for each in blocks]),
        "column_counts": np.array([len(each.columns) for each in blocks]),
        "weights": np.concatenate([each.weights.ravel() for each in blocks]).astype(np.float32),
        "feature_weights": np.array(saved.features.weights, np.float64),
        "cluster_columns": saved.words.block.columns,
        "cluster_weights": saved.words.block.weights,
    }
    words = list(saved.features.numbers)
    names = {
        "version": VERSION,
        "length": saved.length,
        "encoder_share": saved.words.share,
        "words_in_a_row": saved.features.words,
        "labels": saved.labels,
        "words": words,
    }
    with machine_errors(folder):
        write_tensors(folder / f"{NUMBERS}.part", {name: torch.from_numpy(each) for name, each in arrays.items()})
        replace(folder / f"{NUMBERS}.part", folder / NUMBERS)
        write_text(folder / NAMES, json.dumps(names, ensure_ascii=False) + "\n")


def load(folder: Path) -> SavedRanker:
    """Read the ranker in the folder of a model.

    Raises:
        ModelFileError: there is none, or its files are damaged or do not fit each other.
    """
    if not (folder / NAMES).is_file() or not (folder / NUMBERS).is_file():
        hint = "orrery finetune many-labels writes it beside the model that it trains; averages and GGUF leave it out"
        raise ModelFileError(f"{folder} has no ranker of labels ({NAMES}, {NUMBERS})", hint)
    names, numbers = read_json(folder / NAMES, LIMIT), read_tensors(folder / NUMBERS)
    try:
        if names["version"] not in (1, VERSION):
            raise ModelFileError(f"{folder / NAMES} is of version {names['version']}", "install a newer Orrery")
        _check(names, numbers)
        features = TfIdf(
            {word: number for number, word in enumerate(names["words"])},
            numbers["feature_weights"].tolist(),
            names["words_in_a_row"],
        )
        arrays = {name: tensor.numpy() for name, tensor in numbers.items()}
        return SavedRanker(names["labels"], features, _ranker(arrays), names["length"], _words(names, arrays))
    except (KeyError, ValueError, TypeError, RuntimeError, IndexError) as error:
        message = f"{folder / NAMES} and {NUMBERS} are no sound ranker: {type(error).__name__} {error}"
        raise ModelFileError(message, "train it again: orrery finetune") from None


def _check(names: dict[str, Any], numbers: dict[str, Any]) -> None:
    """Raise ``ValueError`` where the parts of both files are not of their kinds, or do not fit each other."""
    labels, words = names["labels"], names["words"]
    if not all(isinstance(names[key], int) and names[key] > 0 for key in ("length", "words_in_a_row")):
        raise ValueError("length and words_in_a_row are whole numbers above 0")
    if not all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in (labels, words)):
        raise ValueError("labels and words are lists of texts")
    if len(words) != len(set(words)) or len(words) != len(numbers["feature_weights"]):
        raise ValueError(f"{len(words)} words, {len(numbers['feature_weights'])} weights of words")
    if numbers["members"].sort().values.tolist() != list(range(len(labels))):
        raise ValueError(f"the clusters do not hold each of {len(labels)} labels once")
    if any(int(numbers[f"{part}_counts"].sum()) != len(numbers[f"{part}s"]) for part in ("member", "column")):
        raise ValueError("the sizes of clusters do not fit what they hold")


def _ranker(numbers: dict[str, Any]) -> Ranker:
    members = np.split(numbers["members"], numbers["member_counts"].cumsum()[:-1])
    columns = np.split(numbers["columns"], numbers["column_counts"].cumsum()[:-1])
    sizes = numbers["member_counts"] * numbers["column_counts"]
    if sizes.sum() != len(numbers["weights"]):
        raise ValueError(f"{len(numbers['weights'])} weights for {sizes.sum()}")
    weights = np.split(numbers["weights"], sizes.cumsum()[:-1])
    shaped = (w.reshape(len(c), len(m)) for w, c, m in zip(weights, columns, members, strict=True))
    return Ranker(members, [Block(c, w) for c, w in zip(columns, shaped, strict=True)])


def _words(names: dict[str, Any], numbers: dict[str, Any]) -> ClustersByWords:
    clusters = len(numbers["member_counts"])
    if names["version"] == 1:
        return encoder_alone(clusters)
    columns, weights, share = numbers["cluster_columns"], numbers["cluster_weights"], names["encoder_share"]
    if not isinstance(share, float | int) or not 0 <= share <= 1:
        raise ValueError("encoder_share is a number from 0 to 1")
    if weights.shape != (len(columns), clusters):
        raise ValueError(f"weights of {weights.shape} for {len(columns)} columns and {clusters} clusters")
    return ClustersByWords(Block(columns, weights), share)
