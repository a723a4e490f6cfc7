"""Questions about large models: parameters, memory, compute."""

from dataclasses import replace

import torch

from orrery.models.decoding_memory import bytes_per_token
from orrery.planning.matrices import LECTURE, matrices_of, total
from orrery.planning.parameters import parameters
from orrery.planning.presets import preset
from orrery.planning.training_compute import petaflop_days, training_flops
from orrery_course.quiz._question import Question, Wrong, holds, number, numbers, question

BILLION = 10**9
GPT3 = "gpt3-175b"
SYNAPSES = 10**14


@question("memory", "S3", "How large are LLMs?")
def memory() -> Question:
    """Ask for the memory of the weights."""
    size, width = 175 * BILLION, torch.float16.itemsize
    wrong = (
        Wrong(number(size * torch.float32.itemsize / BILLION), "that is float32"),
        Wrong(number(size / BILLION), "that is a byte each, as int8 has it"),
    )
    why = (
        f"{width} bytes each. Our count of the same model is {parameters(preset(GPT3)):,} parameters; its "
        "training needs "
        "gradients and the optimizer's two averages beside."
    )
    asks = "GPT-3 has 175 billion parameters. How many gigabytes (billions of bytes) are they in float16?"
    return Question(asks, "numbers", numbers((size * width / BILLION,)), wrong, why, "orrery plan gpt3-175b")


@question("compute", "S3", "Why does efficiency matter?")
def compute() -> Question:
    """Ask for the petaflop/s-days of GPT-3."""
    flops = training_flops(175 * BILLION, 300 * BILLION)
    days = float(petaflop_days(flops))
    small = float(petaflop_days(training_flops(2650 * 10**6, 300 * BILLION)))
    wrong = (
        Wrong(number(days / 3, 6), "2ND is the pass forward alone; the backward pass takes twice as much again"),
        Wrong("50", f"that stands on the slide, and belongs to the model of 3 billion parameters ({number(small, 3)})"),
        Wrong(
            number(float(petaflop_days(training_flops(175 * BILLION, 500 * BILLION))), 6),
            "that is for 500 billion tokens",
        ),
    )
    why = (
        f"6ND = {float(flops):.3g} operations, over 8.64e19 of a petaflop/s-day: {days:,.1f}. At 0.4 PF/s a "
        f"GPU: {days / 0.4:,.0f} GPU-days."
    )
    asks = "Training 175 billion parameters on 300 billion tokens takes 6ND operations. How many petaflop/s-days?"
    return Question(asks, "numbers", numbers((days,), 6), wrong, why, "orrery plan gpt3-175b --tokens 300e9")


@question("matrices", "S4", "Total weights")
def matrix_count() -> Question:
    """Ask for the number of matrices of GPT-3."""
    listed = matrices_of(preset(GPT3))
    weights, found = total(listed, LECTURE)
    per_head = total(listed, replace(LECTURE, output_per_head=True))[1]
    wrong = (
        Wrong(f"{per_head:,}", "that counts the output matrix once a head; it is one a layer"),
        Wrong(
            f"{found - 3 * 95 * 96:,}",
            "that counts key, query and value once a layer, as programs store them; the slide has one a head",
        ),
    )
    why = (
        "3 x 96 heads x 96 layers of keys, queries and values, 96 outputs, 96 up, 96 down, 2 tables: "
        f"{found:,}, with {weights:,} numbers."
    )
    asks = (
        "GPT-3: 96 layers of 96 heads; key, query and value a head, one output, one up and one down a layer, "
        "embedding and "
        "un-embedding. How many matrices?"
    )
    return Question(asks, "numbers", (f"{found:,}",), wrong, why, "orrery plan --tables")


@question("cache", "S3", "KV cache")
def cache() -> Question:
    """Ask for the bytes of a token in the cache."""
    spec = preset(GPT3)
    found = bytes_per_token(spec, torch.float16)
    wrong = (
        Wrong(f"{found // 2:,}", "keys and values are both kept"),
        Wrong(f"{found // 96:,}", "that is one of 96 layers"),
        Wrong(f"{2 * found:,}", "that is float32"),
    )
    why = f"2 x 96 layers x 12,288 channels x 2 bytes = {found:,}; {found * spec.context:,} at {spec.context:,} tokens."
    asks = "How many bytes does each token keep in the key-value cache of GPT-3 (96 layers, 12,288 channels, float16)?"
    return Question(asks, "numbers", (f"{found:,}",), wrong, why, "orrery course S3 cache")


@question("what-to-keep", "S3", "KV cache, what stays")
def what_to_keep() -> Question:
    """Ask which tensors a step needs of the steps before."""
    rng = torch.Generator().manual_seed(0)
    q_LC, k_LC, v_LC = torch.randn(3, 5, 8, dtype=torch.float64, generator=rng)
    expected = (q_LC[-1] @ k_LC.T).softmax(0) @ v_LC
    noise_C = torch.randn(8, dtype=torch.float64, generator=rng)

    def needed(name: str) -> bool:
        tensors = {"queries": q_LC.clone(), "keys": k_LC.clone(), "values": v_LC.clone()}
        tensors[name][:-1] += noise_C
        changed = (tensors["queries"][-1] @ tensors["keys"].T).softmax(0) @ tensors["values"]
        return float((changed - expected).abs().max()) > 1e-9

    scores_LS = torch.randn(5, 5, dtype=torch.float64, generator=rng)
    alone = torch.equal(scores_LS.softmax(-1)[-1], scores_LS[-1].softmax(-1))
    why_not = "a new token has a query of its own, and nobody asks the old ones again"
    right, wrong = holds(
        [
            ("keys", needed("keys"), ""),
            ("values", needed("values"), ""),
            ("queries", needed("queries"), why_not),
            ("weights of the steps before", not alone, "each row of weights is used once, for its own token"),
        ]
    )
    why = "Changing old queries changes nothing of the new token's result; changing old keys or values does."
    asks = "Which tensors of the tokens before does a step of generation need?"
    return Question(asks, "many", right, wrong, why, "orrery course S3 cache")


@question("synapses", "S0", "Brain and model")
def synapses() -> Question:
    """Ask for the share of a model's parameters in a brain's synapses."""
    claimed = 1.5e12
    share = 100 * claimed / SYNAPSES
    wrong = (
        Wrong(number(100 * claimed / 85e9, 6), "those are neurons; a parameter is likened to a synapse"),
        Wrong(number(share / 100), "that is the share itself; percent are a hundred times as many"),
    )
    why = f"{number(share)} %; 175 billion are {number(100 * 175 * BILLION / SYNAPSES)} %."
    asks = (
        "A model of 1.5 trillion parameters, a brain of 1e14 synapses: what share of the synapses is that, in percent?"
    )
    return Question(asks, "numbers", numbers((share,)), wrong, why, "orrery course S0 sizes")
