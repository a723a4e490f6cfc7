"""Are a reader and a writer of their own better than one decoder that does both?

An encoder-decoder has different parameters for what it reads and what it writes; a decoder with a prefix mask has one
set for both (Raffel et al. 2020, section 3.2). At equal parameters both learn the same task, and the decoder pays: each
of its words passes all parameters, where in the encoder-decoder it passes only those of its own side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from orrery.families import load_family
from orrery.models.decoder import Decoder
from orrery.models.inputs import Batch
from orrery.nn.attention.kernels import eager
from orrery.nn.cross_entropy import IGNORED
from orrery.nn.masks import Prefix
from orrery.objectives.causal import CausalLanguageModel
from orrery.objectives.seq2seq import SequenceToSequence
from orrery.reports.figures import line_chart
from orrery.studies.fitting import build, build_spec, fit, parameters
from orrery_course.labs import _pairs
from orrery_course.labs._curves import mean
from orrery_course.labs._lab import Numbers
from orrery_course.labs._operations import counted
from orrery_course.labs._pairs import START, FreeOrder, Pairs

WIDTH, HEADS, PLACES, RATE, TESTED = 32, 4, 24, 5e-3, 128
TASK, STEPS, LENGTHS = FreeOrder(48, 48, 2, 8, parts=12), 650, (2, 4, 6, 8)
QUICK_TASK, QUICK_STEPS, QUICK_LENGTHS = FreeOrder(24, 48, 2, 6, parts=8), 350, (2, 6)
BOTH, ONE = "encoder-decoder", "prefix decoder"
DEPTH = 2
"""Layers of the encoder and of the decoder."""
DECODER_DEPTH, DECODER_HIDDEN = 5, 112
KNOWN, EQUAL, DEARER = 0.9, 0.03, 1.5


@dataclass(frozen=True)
class JoinedPairs:
    """Pairs as one text each: the source, the start token, the target; only the target is to be said."""

    pairs: Pairs

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch of sentences of one length."""
        return joined(self.pairs(rng))


def joined(batch: Batch) -> Batch:
    """Return a batch of pairs as texts, with the length of what is given."""
    source_BS, ids_BL, targets_BL = batch["source"], batch["ids"], batch["targets"]
    silent_BS = torch.full_like(source_BS, IGNORED)
    return {
        "ids": torch.cat([source_BS, ids_BL], 1),
        "targets": torch.cat([silent_BS, targets_BL], 1),
        "prefix": torch.full((len(source_BS),), source_BS.shape[1]),
    }


def run(seed: int, quick: bool = False) -> Numbers:
    """Train both and return the part of the words in their places by length, the sizes and the operations."""
    task, steps, lengths = (QUICK_TASK, QUICK_STEPS, QUICK_LENGTHS) if quick else (TASK, STEPS, LENGTHS)
    two, one = encoder_decoder(task.vocabulary, seed), prefix_decoder(task.vocabulary, seed)
    fit(two, SequenceToSequence(), task, steps, RATE, seed)
    fit(one, CausalLanguageModel(), JoinedPairs(task), steps, RATE, seed)
    test, rng = replace(task, rows=TESTED), torch.Generator().manual_seed(seed + 1000)
    batches = {str(length): test.of_length(length, rng) for length in lengths}
    batch = batches[str(lengths[-1])]
    text = joined(batch)
    spent = {
        BOTH: counted(lambda: two.logits(batch["source"], batch["ids"], kernel=eager)),
        ONE: counted(lambda: one.logits(text["ids"], prefix=text["prefix"], kernel=eager)),
    }
    words = TESTED * (2 * lengths[-1] + 1)
    return {
        "accuracy": {
            BOTH: {length: _pairs.accuracy(two, batch) for length, batch in batches.items()},
            ONE: {length: accuracy(one, batch) for length, batch in batches.items()},
        },
        "parameters": {BOTH: parameters(two), ONE: parameters(one)},
        "operations a word": {name: count / words for name, count in spent.items()},
        "chance": 1 / task.vocabulary,
    }


def encoder_decoder(vocabulary: int, seed: int) -> Any:
    """Return the original Transformer, small."""
    sizes = {"d_model": WIDTH, "d_ff": 4 * WIDTH, "num_layers": DEPTH, "num_heads": HEADS}
    more = {"dropout": 0.0, "max_position_embeddings": PLACES, "decoder_start_token_id": START}
    return build("transformer", seed, {"vocab_size": vocabulary, **sizes, **more})


def prefix_decoder(vocabulary: int, seed: int) -> Decoder:
    """Return the same layers once, with a prefix mask, and as many of them as the parameters allow."""
    sizes = {"n_embd": WIDTH, "n_inner": DECODER_HIDDEN, "n_layer": DECODER_DEPTH, "n_head": HEADS}
    no_dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = {"vocab_size": vocabulary, "n_positions": PLACES, **sizes, **no_dropout}
    spec: Any = load_family("gpt2").spec(config)
    model: Decoder = build_spec(replace(spec, stack=replace(spec.stack, masks={"causal": Prefix()})), seed)
    return model


@torch.no_grad()
def accuracy(model: Decoder, batch: Batch) -> float:
    """Return the part of the target's tokens, the end among them, that the decoder writes in their places."""
    source_BS, targets_BL = batch["source"], batch["targets"]
    given_BS = torch.cat([source_BS, batch["ids"][:, :1]], 1)
    rows, places = given_BS.shape
    prefix = [places - 1] * rows
    logits_BV, session = model.start(given_BS, places + targets_BL.shape[1], prefix=prefix)
    tokens_B1: list[Tensor] = [logits_BV.argmax(-1, keepdim=True)]
    while len(tokens_B1) < targets_BL.shape[1]:
        tokens_B1.append(model.step(tokens_B1[-1], session)[:, -1].argmax(-1, keepdim=True))
    return float((torch.cat(tokens_B1, 1) == targets_BL).double().mean())


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold equal sizes, that both learn, and what the one set of parameters costs."""
    accuracies, sizes, spent = (numbers[name] for name in ("accuracy", "parameters", "operations a word"))
    longest = max(accuracies[BOTH], key=int)
    return {
        f"both have as many parameters, within {EQUAL:.0%}": EQUAL - abs(sizes[ONE] / sizes[BOTH] - 1),
        f"the {BOTH} writes {KNOWN:.0%} right at {longest} words": accuracies[BOTH][longest] - KNOWN,
        f"the {ONE} too": accuracies[ONE][longest] - KNOWN,
        f"a word costs the {ONE} {DEARER} times the operations or more": spent[ONE] / spent[BOTH] - DEARER,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the mean over the seeds."""
    first = runs[0]
    series = {
        f"{name}, {first['operations a word'][name] / 1000:.0f}k a word": mean(runs, "accuracy", name)
        for name in (BOTH, ONE)
    }
    series["a word at random"] = [(float(length), first["chance"]) for length in first["accuracy"][ONE]]
    title = f"Accuracy by length, at {first['parameters'][BOTH]:,} and {first['parameters'][ONE]:,} parameters"
    return line_chart(series, title=title, x_label="words of the source", y_label="part of the words right")
