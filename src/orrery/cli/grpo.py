"""``orrery grpo``: a model and prompts in, a policy that answers better than its own mean."""

from typing import Annotated

from cyclopts import Parameter

from orrery.cli.answering import learn
from orrery.cli.methods import ONCE, RunOptions
from orrery.cli.places import DATA, MODEL_IF_PATH, MODEL_OR_RECIPE


def grpo(
    model: Annotated[str, MODEL_OR_RECIPE],
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    train: Annotated[str | None, DATA] = None,
    val: Annotated[str | None, DATA] = None,
    reward: Annotated[tuple[str, ...], MODEL_IF_PATH, Parameter(negative=())] = (),
    run: RunOptions = ONCE,
) -> int:
    """Teach a model by its own answers, each against the others to the same prompt (GRPO, RLOO, DAPO).

    Each prompt is answered several times; rewards judge the answers, and what is better than the others becomes
    likelier, held near the model that it began with. --objective dr_grpo, dapo or rloo takes a neighbouring method.
    Length, steps and rate are found from prompts and model; --print-config shows the recipe. The run's progress.html
    follows reward, divergence, length and entropy.

    Args:
        model: The model to begin from: a run, a checkpoint, a Hugging Face folder, a GGUF file; or a recipe,
            which says all the rest.
        overrides: Keys of the recipe with new values, such as --training.steps 500 or --data.samples 16.
        train: The prompts, with the columns that rewards read: JSON lines, CSV, Parquet, or a named set.
        val: Prompts to measure on; by default a tenth of those to learn from is held back.
        reward: What an answer is worth: arithmetic, code, exact, or the folder of a reward model; may be given several
            times, and their sum is learned. One with settings stands in a recipe.
        run: How often, from where on, and where to.
    """
    return learn("grpo", model, overrides, run, train=train, val=val, reward=reward)
