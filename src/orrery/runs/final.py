"""What a run shows while it learns and leaves behind: samples, and a folder that transformers loads as well."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from orrery.exchange.reading.read import Stored
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model, write_uses
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from orrery.models.model import ModelSpec
from orrery.models.pair_scores import IDENTITY, OfHead, PairScores
from orrery.models.sentence_vectors import Pooling, Sentences, SentenceVectors, UnitLength, mean_of_tokens
from orrery.objectives.contrastive import STEPS
from orrery.recipes.config import Recipe
from orrery.runs.building import Assembled
from orrery.text.chat.folder import DEFAULT
from orrery.text.chat.of_run import template_of_run
from orrery.training.units import written_in_own_units


def writer(recipe: Recipe, assembly: Assembled) -> Callable[[Any, Path], None]:
    """Return what writes the final model: the Hugging Face layout for a family, our own for a spec or an adapter."""
    base = None if assembly.base is None else assembly.base.stored
    said = {**(base.generation if base else {}), **recipe.generation.said}
    chat = assembly.chat
    said |= ends(assembly, said.get("eos_token_id"))

    def layout(model: Any, folder: Path) -> None:
        tokens = recipe.training.steps * assembly.batch_tokens
        card = {"name": recipe.name, "data": recipe.data.described, "tokens": tokens}
        save_model(
            folder,
            model,
            str(assembly.family),
            assembly.config,
            assembly.tokenizer,
            card,
            said,
            chat,
            sentences=sentences(recipe, base, assembly.parts.modules),
            pairs=pair_scores(assembly.spec, base),
            pictures=assembly.pictures,
        )

    def own(model: Any, folder: Path) -> None:
        save_own(folder, model, assembly.tokenizer, generation=said, chat=chat, pictures=assembly.pictures)
        write_uses(folder, sentences(recipe, base, assembly.parts.modules), None, assembly.spec.width)

    def adapted(model: Any, folder: Path) -> None:
        save_own(
            folder,
            model,
            assembly.tokenizer,
            family=assembly.family,
            config=assembly.config,
            generation=said,
            chat=chat,
            pictures=assembly.pictures,
        )
        write_uses(folder, sentences(recipe, base, assembly.parts.modules), None, assembly.spec.width)

    if recipe.model.adapter is not None:
        return written_in_own_units(adapted)
    # A published layout has no place for heads beside its own, and its card begins with the tokenizer.
    return written_in_own_units(own if assembly.family is None else layout)


def sentences(recipe: Recipe, base: Stored | None, owned: Mapping[str, nn.Module]) -> Sentences | None:
    """Return how the trained model makes vectors of texts, where it was trained to; rows and prompts as its base has.

    They get the length 1, since cosines were learned. Steps that were learnt stand behind the pooling.
    """
    learned: Any = recipe.objective
    if not hasattr(learned, "pooling"):
        return None
    vectors_of_texts = mean_of_tokens() if base is None or base.sentences is None else base.sentences
    learnt: Any = owned.get(STEPS, ())
    steps = [deepcopy(step).cpu() for step in learnt]
    ends = [] if steps and isinstance(steps[-1], UnitLength) else [UnitLength()]
    vectors = SentenceVectors(Pooling((learned.pooling,)), [*steps, *ends])
    return replace(vectors_of_texts, vectors=vectors, given=True)


def pair_scores(spec: ModelSpec, base: Stored | None) -> PairScores | None:
    """Return how the trained model scores pairs, where it learnt numbers: as they are, for those are no logits.

    Without a word sentence-transformers' cross-encoders, and ``rank`` here, send a single number through a sigmoid.
    """
    numbers = (name for name, head in spec.heads.items() if getattr(head, "problem", "") == "regression")
    head = next((name for name in numbers if getattr(spec.heads[name], "labels", 0) == 1), None)
    if head is None:
        return None
    known = None if base is None else base.pairs
    own = known if known is not None and isinstance(known.scorer, OfHead) else PairScores(OfHead(head, 1), given=False)
    return replace(own, scorer=OfHead(head, 1), activation=IDENTITY)


def ends(assembly: Assembled, known: Any) -> dict[str, Any]:
    """Return the end tokens for generation_config.json: those known, and the one that ends a reply of the template.

    Nothing where there is no template, or none that says so: transformers and servers stop at these alone.
    """
    if DEFAULT not in assembly.chat or assembly.tokenizer is None:
        return {}
    tokenizer = assembly.tokenizer
    usual = [tokenizer.special("end")] if "end" in tokenizer.roles else []
    first = usual if known is None else known if isinstance(known, list) else [known]
    tokens = list(dict.fromkeys([*first, *sorted(template_of_run(assembly.chat, tokenizer).end)]))
    return {"eos_token_id": tokens} if len(tokens) > len(first) else {}


def sample_writer(recipe: Recipe, assembly: Assembled) -> Callable[[Any], str] | None:
    """Return what writes a sample at each evaluation, from the recipe's prompt; None where it names none."""
    prompt = recipe.evaluation.sample
    if prompt is None:
        return None
    tokenizer, apart = assembly.required_tokenizer, assembly.spec.reads_source
    limits = Limits(80, assembly.spec.context, frozenset({tokenizer.special("end")}))

    def write(model: Any) -> str:
        ids = tokenizer.frame(prompt).ids or [tokenizer.special("end")]
        draw = sampler(temperature=0.8, vocabulary=tokenizer.size)
        device = next(model.parameters()).device
        answer = generate(model.eval(), [ids], tokenizer, limits, sampler=draw, seed=recipe.seed, device=device)[0]
        model.train()
        return f"{prompt} → {answer.text}" if apart else prompt + answer.text

    return write
