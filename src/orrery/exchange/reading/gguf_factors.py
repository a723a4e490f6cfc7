"""Rotary pairs that are slowed one by one: the tensors of factors in a GGUF file, by which it divides each rate.

Llama 3.1's files have one vector of them, ``rope_freqs``. Files of a model with LongRoPE have two, one for texts up to
the trained length and one beyond, and a fact for what multiplies cosine and sine.
Source: https://github.com/ggml-org/llama.cpp, ``convert_hf_to_gguf.py`` and ``src/llama-model.cpp``; measured against
llama.cpp itself.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from orrery.errors import ModelFileError
from orrery.exchange.reading.gguf_parts import TEMPERATURE, TRAINED, Config, Facts
from orrery.models.decoder import Decoder
from orrery.nn.positions.longrope import LongRope
from orrery.nn.positions.rotary import Llama3, Rotary, Unscaled, plain_rates

ALWAYS, SHORT, LONG = "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"
FACTORS = (ALWAYS, SHORT, LONG)
"""The tensors of a file that are no parameters of ours."""
_HINT = "get the file again, or take the Hugging Face folder of the same model"


def written_tensors(spec: Decoder.Spec, facts: Facts) -> dict[str, Tensor]:
    """Return the tensors of a file that are no parameters of ours: what slows every rotary pair.

    Args:
        spec: of the model.
        facts: of the file; where they name a temperature, the architecture has two vectors of factors.
    """
    stack = getattr(spec, "stack", None)
    rotary = stack.positions.get("rotary") if stack is not None else None
    match rotary.scaling if isinstance(rotary, Rotary.Spec) else None:
        case Llama3() as scaling:
            slowed = scaling.rates(rotary.base, rotary.width, spec.context)  # type: ignore[union-attr]  # matched
            plain = plain_rates(rotary.base, rotary.width)  # type: ignore[union-attr]
            return {ALWAYS: (plain / slowed).to(torch.float32)}
        case LongRope() as scaling if TEMPERATURE in facts:
            return {SHORT: torch.tensor(scaling.short), LONG: torch.tensor(scaling.long)}
    return {}


def stated(spec: Decoder.Spec, facts: Facts) -> Decoder.Spec:
    """Return what the facts have to say of a spec: all but what ``written_tensors`` says."""
    if not written_tensors(spec, facts):
        return spec
    rotary: Any = spec.stack.positions["rotary"]
    positions = {**spec.stack.positions, "rotary": replace(rotary, scaling=Unscaled())}
    return replace(spec, stack=replace(spec.stack, positions=positions))


def read_scaling(facts: Mapping[str, Any], numbers: Callable[[str], Tensor], names: set[str]) -> Config | None:
    """Return the key ``rope_scaling`` of a file that holds such tensors; without them there is none.

    Args:
        facts: of the file.
        numbers: gives a tensor by its name.
        names: of the file's tensors.

    Raises:
        ModelFileError: one of the two vectors is missing.
    """
    if ALWAYS in names:
        return scaling_of(numbers(ALWAYS), facts["rope.freq_base"], facts["context_length"])
    given = names & {SHORT, LONG}
    if not given:
        return None
    if lacking := {SHORT, LONG} - given:
        raise ModelFileError(f"of the two tensors of rotary factors it lacks {lacking.pop()}", _HINT)
    context = facts["context_length"]
    trained, temperature = facts.get(TRAINED, context), facts.get(TEMPERATURE, 1.0)
    scaling = {
        "rope_type": "longrope",
        "short_factor": numbers(SHORT).double().tolist(),
        "long_factor": numbers(LONG).double().tolist(),
        "original_max_position_embeddings": trained,
    }
    return scaling if _is_usual(temperature, context, trained) else {**scaling, "attention_factor": temperature}


def _is_usual(temperature: float, context: int, trained: int) -> bool:
    """Say whether a temperature in float32 is the paper's, ``sqrt(1 + ln(context / trained) / ln(trained))``."""
    if not 1 < trained < context:
        return temperature == 1.0
    usual = math.sqrt(1 + math.log(context / trained) / math.log(trained))
    return torch.tensor(usual, dtype=torch.float32).item() == temperature


def scaling_of(factors: Tensor, base: float, context: int) -> Config:
    """Return how the file slows its rotary pairs: Llama 3.1's rule where it gives these factors, else one by one.

    A file says by what each pair is divided, and not why.
    """
    width = 2 * factors.numel()
    plain = plain_rates(base, width)
    for trained in dict.fromkeys((8192, context, *(2**power for power in range(3, 21)))):
        rule = Llama3(factor=float(factors.max()), low_frequency=1.0, high_frequency=4.0, trained=trained)
        slowed = (plain / rule.rates(base, width, context)).to(torch.float32)
        if torch.equal(slowed, factors.to(torch.float32)):
            return {
                "rope_type": "llama3",
                "factor": rule.factor,
                "low_freq_factor": rule.low_frequency,
                "high_freq_factor": rule.high_frequency,
                "original_max_position_embeddings": trained,
            }
    by_pair = factors.double().tolist()
    return {
        "rope_type": "longrope",
        "short_factor": by_pair,
        "long_factor": by_pair,
        "attention_factor": 1.0,
        "factor": 1.0,
        "original_max_position_embeddings": context,
    }
