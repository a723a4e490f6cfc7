"""One of two processes that share a model by FSDP2: ``python sharded.py``, with the variables that torchrun sets.

The first prints, for every objective and some models, how far loss and gradients are from those of one process.
"""

import copy
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

import own_parts
from objectives_toy import generator, text_rows, tokenizer_of
from orrery.errors import UsageError
from orrery.families import answering, load_family, spec_of
from orrery.models.heads import HEADS
from orrery.models.prefix_mask import with_prefix
from orrery.objectives import OBJECTIVES, Objective
from orrery.objectives._contracts import needed_head, own_modules
from orrery.recipes.parallel import ParallelSettings
from orrery.runs.begin import with_heads
from orrery.training.contract import finished_batch
from orrery.training.distributed import Alone
from orrery.training.parallel.joining import find_ranks
from orrery.training.parallel.placement import place
from orrery.training.parallel.shards import whole as gathered
from orrery.training.precision import Precision
from orrery.training.step import accumulate
from rollout_toy import stale, world

DEGREES = ParallelSettings(fsdp=2)
ROWS, LENGTH = 4, 7
MODELS = {
    "causal": ("llama", "gpt2", "lstm"),
    "sft": ("llama",),
    "seq2seq": ("transformer", "t5", "rnnsearch"),
    "verdicts": ("llama",),
    "classification": ("bert", "electra"),
    "multi_label": ("roberta",),
    "regression": ("distilbert",),
    "binary": ("bert",),
    "tagging": ("modernbert",),
    "question_answering": ("bert",),
    "masked": ("bert", "albert"),
    "next_sentence": ("bert",),
    "sentence_order": ("albert",),
    "replaced_token": ("electra",),
    "span_corruption": ("t5",),
    "denoising": ("bart",),
    "prefix": ("llama",),
    "contrastive": ("bert",),
    "distillation": ("llama",),
    "dpo": ("llama",),
    "dpo_norm": ("gpt2",),
    "ipo": ("llama",),
    "kto": ("llama",),
    "orpo": ("llama",),
    "simpo": ("gpt2",),
    "reward": ("llama", "bert"),
}
FRAMES = {"span_corruption": "t5", "denoising": "roberta", "prefix": None}
"""The special tokens of the objectives that corrupt text; of those on encoders they are BERT's."""
PRETRAINED = {"next_sentence": "Bert", "sentence_order": "Albert", "replaced_token": "Electra"}
"""The families whose class for pre-training has the head that an objective trains."""
DRAWN = {"width": 16}
"""Of the decoder of the objectives that draw pictures."""
LABELS = {"a": 5, "b": 3}
COUPLED = ("contrast", "contrastive", "kto")
"""Objectives whose terms couple the rows of a batch: two processes refuse them by name."""


def cases() -> Iterator[tuple[str, str, Objective, nn.Module, dict[str, Tensor]]]:
    """Yield every objective with models that it trains, and a batch."""
    for name in OBJECTIVES.names():
        kind = OBJECTIVES.find(name)
        if "images" in kind.needs:
            yield looking(name)
            continue
        if kind.makes:
            yield from corrupting(name)
            continue
        if "written" in kind.needs:
            yield answers(name)
            continue
        for family in MODELS[name]:
            rules = load_family(family)
            settings = {"verdicts": {"head": "odd"}, "distillation": {"teacher": "another"}}.get(name, {})
            needed = needed_head(kind(**settings), LABELS)
            config = rules.TINY if needed is None else answering(family, rules.TINY, needed.kind, needed.labels)
            spec = spec_of(rules, config)
            if name == "verdicts":
                spec = with_heads(spec, {"odd": own_parts.VerdictSettings()})
            torch.manual_seed(0)
            model = spec.build()
            rng = torch.Generator().manual_seed(1)
            draw = lambda top, rng=rng: torch.randint(1, top, (ROWS, LENGTH), generator=rng)  # noqa: E731
            batch = {field: draw(read.vocabulary) for field, read in spec.inputs.items()}
            batch |= {"targets": draw(20).masked_fill(draw(5) == 1, -100), "labels": draw(9)[:, 0] % 2}
            batch |= {"starts": draw(3)[:, 0], "ends": draw(5)[:, 1]}
            batch |= {"labels": draw(9)[:, :2] % 2 * 1.0} if name == "multi_label" else {}
            batch |= {"targets": batch["targets"] % 2} if name == "tagging" else {}
            batch |= {"group": torch.arange(ROWS) // 2, "real": torch.ones(ROWS, LENGTH, dtype=torch.bool)}
            batch |= preferences(name, batch["ids"]) if {"reply", "margin"} & set(kind.needs) else {}
            objective = kind(**settings)
            if name == "distillation":
                objective.bind(spec, None)
                objective.take({"teacher": spec.build()})
            yield name, family, objective, model, {k: batch[k] for k in (*spec.inputs, *kind.needs)}


def looking(name: str) -> tuple[str, str, Objective, nn.Module, dict[str, Tensor]]:
    """Return an objective on pictures with a model that it trains, and a finished batch."""
    kind = OBJECTIVES.find(name)
    written = {"captioning": "vision_encoder_decoder", "contrast": "clip"}
    family = written.get(name, "vit")
    objective, rules = kind(**(DRAWN if kind.needs == ("images",) else {})), load_family(family)
    needed, spec = needed_head(objective, LABELS), spec_of(rules, rules.TINY)
    if needed is not None:
        settings = HEADS.find(needed.kind).Settings(labels=needed.labels)
        spec = with_heads(spec, {needed.name: settings})
    objective.bind(spec, None)
    torch.manual_seed(0)
    model = spec.build()
    rng = torch.Generator().manual_seed(1)
    shape = spec.inputs["images"].shape
    fields = {"images": torch.randn(ROWS, *shape), "boxes": torch.rand(ROWS, 2, 4, generator=rng) / 2 + 0.25}
    fields |= {"classes": torch.randint(2, (ROWS, 2), generator=rng)}
    fields |= {"ids": torch.randint(1, 20, (ROWS, LENGTH), generator=rng)}
    of_texts = (ROWS, LENGTH) if name in written else (ROWS, *shape[1:])
    fields |= {"targets": torch.randint(2, of_texts, generator=rng)}
    batch = {field: fields[field] for field in objective.needs}
    return name, family, objective, model, finished_batch(objective, batch, generator(), spec.inputs)


def answers(name: str) -> tuple[str, str, Objective, nn.Module, dict[str, Tensor]]:
    """Return an objective on a model's own answers, and a batch of them as a later step of the rollout gets it."""
    own = world(name)
    return name, "llama", own.objective, own.model, stale(own.rollouts.batch(0))


def preferences(name: str, ids: Tensor) -> dict[str, Tensor]:
    """Return two sides an example, the last tokens of each a reply."""
    sides = torch.stack([ids, ids.flip(0)], 1)
    said = (torch.arange(LENGTH) > 3).expand_as(sides)
    real = torch.ones_like(said)
    return {"ids": sides, "real": real, "reply": said, "margin": torch.zeros(ROWS), "desirable": torch.arange(ROWS) < 2}


def corrupting(name: str) -> Iterator[tuple[str, str, Objective, nn.Module, dict[str, Tensor]]]:
    """Yield an objective that makes its fields of text, with models that it trains, and a finished batch."""
    tokenizer = tokenizer_of(FRAMES.get(name, "bert"))
    for family in MODELS[name]:
        rules = load_family(family)
        config = {**rules.TINY, "vocab_size": tokenizer.size}
        config |= {"architectures": [f"{PRETRAINED[name]}ForPreTraining"]} if name in PRETRAINED else {}
        config |= {"decoder_start_token_id": tokenizer.special("end")} if FRAMES.get(name) else {}
        spec = rules.spec(config)
        spec = with_prefix(spec) if name == "prefix" else spec
        objective = OBJECTIVES.find(name)(**({"generator": 1 / 3} if name == "replaced_token" else {}))
        objective.bind(spec, tokenizer)
        torch.manual_seed(0)
        model = spec.build()
        ids, labels = text_rows(tokenizer, ROWS, 3 * LENGTH + 1), torch.tensor([0, 1, 1, 0])
        fields = {"ids": ids[:, :-1], "targets": ids[:, 1:], "follows": labels, "in_order": labels}
        fields |= {"real": torch.ones_like(ids[:, 1:], dtype=torch.bool), "token_types": (ids[:, 1:] > 150).long()}
        batch = {field: fields[field] for field in objective.needs}
        yield name, family, objective, model, finished_batch(objective, batch, generator(), spec.inputs)


def learned(objective: Objective, model: nn.Module, batch: dict[str, Tensor], ranks: Any) -> dict[str, Tensor]:
    """Return the loss and the whole gradient of every parameter, those of the objective's own among them."""
    torch.manual_seed(1)
    owned = nn.ModuleDict(own_modules(objective, copy.deepcopy(model)))
    place(model, ranks, DEGREES if ranks.replicas > 1 else ParallelSettings())
    whole = nn.ModuleDict({"model": model, "objective": owned})
    precision = Precision("float32", "plain", "cpu", 1)
    loss = accumulate(
        model, objective, batch, micro_batch=1, seed=(0, 0), ranks=ranks, precision=precision, learner=whole
    )
    gradients = {"loss": torch.tensor(loss.loss)}
    for name, parameter in whole.named_parameters():
        gradient = parameter.grad
        if gradient is not None:
            gradients[name] = gathered(gradient)
    return gradients


def refused(objective: Objective, model: nn.Module, batch: dict[str, Tensor], ranks: Any) -> float:
    """Return 0 where two processes refuse a term that couples the rows of a batch, else infinity."""
    try:
        learned(objective, model, batch, ranks)
    except UsageError as error:
        return 0.0 if "couples the examples of a batch" in error.message else float("inf")
    return float("inf")


def main() -> int:
    """Compare two processes with one."""
    torch.set_num_threads(1)
    warnings.filterwarnings("error", "FSDP2")  # a user would read it once a process
    ranks, told = find_ranks("cpu", DEGREES), {}
    for name, family, objective, model, batch in cases():
        if name in COUPLED:
            told[f"{name} {family}"] = refused(objective, model.eval(), batch, ranks)
            continue
        alone = learned(copy.deepcopy(objective), copy.deepcopy(model).eval(), batch, Alone())
        shared = learned(objective, model.eval(), batch, ranks)
        assert alone.keys() == shared.keys()
        apart = {
            key: float((alone[key] - shared[key]).abs().max() / alone[key].abs().max().clamp(min=1)) for key in alone
        }
        assert len(apart) > 5
        told[f"{name} {family}"] = max(apart.values())
    if ranks.rank == 0:
        print(json.dumps(told))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
