"""What a run shows while it learns and leaves behind: samples, and a folder that transformers loads as well."""

import json
from collections.abc import Callable
from pathlib import Path

from torch import nn

from orrery.checkpoints.disk import write_text
from orrery.checkpoints.tensors import write_tensors
from orrery.generation.generate import Limits, generate
from orrery.generation.samplers import sampler
from orrery.models.decoder import Decoder
from orrery.models.encoder_decoder import ConditionalDecoder
from orrery.nn.spec import to_json
from orrery.saving.save import save_model
from orrery.training.building import Assembled
from orrery.training.config import Recipe
from orrery.training.state import model_tensors


def writer(recipe: Recipe, assembly: Assembled) -> Callable[[nn.Module, Path], None]:
    """Return what writes the final model: the Hugging Face layout for a family, spec and own names for a spec."""

    def layout(model: nn.Module, folder: Path) -> None:
        tokens = recipe.training.steps * assembly.batch_tokens
        card = {"name": recipe.name, "data": recipe.data.described, "tokens": tokens}
        save_model(folder, model, str(recipe.model.family), assembly.config, assembly.tokenizer, card)

    def own(model: nn.Module, folder: Path) -> None:
        write_tensors(folder / "model.safetensors", model_tensors(model))
        write_text(folder / "spec.json", json.dumps(to_json(assembly.spec), indent=1) + "\n")
        assembly.tokenizer.save(folder)

    return layout if recipe.model.spec is None else own


def sample_writer(recipe: Recipe, assembly: Assembled) -> Callable[[nn.Module], str] | None:
    """Return what writes a sample at each evaluation, from the recipe's prompt; None where it names none."""
    prompt = recipe.evaluation.sample
    if prompt is None:
        return None
    tokenizer = assembly.tokenizer
    limits = Limits(80, assembly.spec.context, frozenset({tokenizer.special("end")}))

    def write(model: nn.Module) -> str:
        assert isinstance(model, Decoder | ConditionalDecoder)
        ids = tokenizer.encode(prompt) or [tokenizer.special("end")]
        draw = sampler(temperature=0.8, vocabulary=tokenizer.size)
        answer = generate(model.eval(), [ids], tokenizer, limits, sampler=draw, seed=recipe.seed)[0]
        model.train()
        return prompt + answer.text if isinstance(model, Decoder) else f"{prompt} → {answer.text}"

    return write
