"""The table of verbs, and the one way in: parse, run, turn every failure into two lines and an exit code."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import orrery
from orrery.cli.console import close_output, report
from orrery.cli.overview import ABOUT, ASKS_FOR_IT, EPILOGUE, overview
from orrery.cli.start import main
from orrery.cli.stopping import cause

if TYPE_CHECKING:
    import cyclopts

__all__ = ["VERBS", "Verb", "build", "main", "run"]


class Verb(NamedTuple):
    """Where a verb lives, as ``module:function`` or ``module:app``, and its line in the list of verbs."""

    target: str
    summary: str


VERBS = {
    "demo": Verb("orrery.cli.demo:demo", "Train, measure, write, look inside: the tour of three minutes, offline."),
    "train": Verb("orrery.cli.train.app:train", "Train a model from a recipe, or continue a run."),
    "finetune": Verb("orrery.cli.finetune:finetune", "Fine-tune a model on labelled data: classify, tag, answer."),
    "sft": Verb("orrery.cli.sft:sft", "Fine-tune a model on conversations: a base becomes an assistant."),
    "ppo": Verb("orrery.cli.ppo:ppo", "Teach a model by its own answers and rewards: PPO, with a value head."),
    "grpo": Verb("orrery.cli.grpo:grpo", "Teach a model by its own answers and rewards: GRPO, RLOO and their kin."),
    "reward": Verb("orrery.cli.reward:reward", "Train a reward model: a number for a conversation, from preferences."),
    "dpo": Verb("orrery.cli.dpo:dpo", "Train a model on preferences: DPO, IPO, KTO, ORPO, SimPO."),
    "distil": Verb("orrery.cli.distil:distil", "Write a model's answers as data, the best of several by rewards."),
    "compare": Verb(
        "orrery.cli.compare:compare", "Compare models of one size on one text, from counts to Transformer."
    ),
    "ladder": Verb("orrery.cli.ladder:ladder", "Train a model in several sizes; predict the largest by a scaling law."),
    "generate": Verb("orrery.cli.generate:generate", "Continue a prompt with a model."),
    "tree": Verb("orrery.cli.tree:tree", "Show the ways that decoding follows behind a text, and those it drops."),
    "see": Verb("orrery.cli.see:see", "Look inside a model while it reads a text: a page, or one HTML file."),
    "patch": Verb("orrery.cli.patch:patch", "Show which parts of a run tell two texts apart: activation patching."),
    "serve": Verb("orrery.cli.serve:serve", "Answer requests over HTTP, as OpenAI's clients make them."),
    "chat": Verb("orrery.cli.chat:chat", "Talk with a model, one line a turn, in the terminal or from a pipe."),
    "score": Verb("orrery.cli.score:score", "Show the log probability of each token of a text."),
    "translate": Verb("orrery.cli.translate:translate", "Translate a sentence, or lines, with an encoder-decoder."),
    "classify": Verb("orrery.cli.classify:classify", "Label texts, also with labels that you name."),
    "tag": Verb("orrery.cli.tag:tag", "Find the entities of texts."),
    "answer": Verb("orrery.cli.answer:answer", "Answer questions with a part of their contexts."),
    "summarise": Verb("orrery.cli.summarise:summarise", "Say texts shorter, with an encoder-decoder."),
    "embed": Verb("orrery.cli.embed:embed", "Turn texts into vectors."),
    "cloze": Verb("orrery.cli.cloze:cloze", "Say which words fit a gap, with their probabilities."),
    "evaluate": Verb("orrery.cli.evaluate.app:evaluate", "Measure a model: perplexity, translation, word vectors."),
    "neighbours": Verb("orrery.cli.neighbours:neighbours", "Show what is near a word: similarity, analogies, a map."),
    "show": Verb("orrery.cli.show:show", "Show the parts of a model and what they weigh, or what differs between two."),
    "plan": Verb("orrery.cli.plan:plan", "Show what a training sees of each corpus, before it starts."),
    "average": Verb("orrery.cli.average:average", "Write the mean of the weights of several checkpoints or models."),
    "export": Verb("orrery.cli.export:export", "Write a model for other programs: GGUF, Hugging Face, word2vec."),
    "quantise": Verb("orrery.cli.quantise:quantise", "Write a model with its matrices in int8 or int4."),
    "import": Verb(
        "orrery.cli.import_model:import_model", "Write a model anew as safetensors, from a pickle only if allowed."
    ),
    "parity": Verb("orrery.cli.parity:parity", "Compare two models layer by layer; say where they part."),
    "tokenizer": Verb(
        "orrery.cli.tokenizer.app:app", "Train a tokenizer, see step by step what it does, compare several."
    ),
    "data": Verb("orrery.cli.data.app:app", "Show, fetch, clean and prepare texts and named data sets."),
    "lab": Verb("orrery.cli.lab:lab", "Run an experiment of the course: a question, a figure, claims over seeds."),
    "verify": Verb("orrery.cli.verify:verify", "Check golden numbers, and that every way through a model agrees."),
    "bench": Verb("orrery.cli.bench.app:app", "Measure this machine and how near to its limits a model writes."),
    "info": Verb("orrery.cli.info:info", "Versions, processor, memory and folders, for a bug report."),
}


def build(words: Sequence[str] = ()) -> "cyclopts.App":
    """Return the parser for a command line; ``ORRERY_<VERB>_<FLAG>`` stands in for a missing flag."""
    import cyclopts
    from cyclopts.config import Env

    app = cyclopts.App(
        name="orrery",
        help=ABOUT,
        help_epilogue=EPILOGUE,
        help_format="plaintext",
        version=f"orrery {orrery.__version__}",
        config=Env("ORRERY_"),
        suppress_keyboard_interrupt=False,
        exit_on_error=False,
        print_error=False,
    )
    for name, verb in VERBS.items():
        # The list of verbs must import none of them; the page of one verb comes from its own docstring.
        app.command(verb.target, name=name, help=None if name in words else verb.summary)
    return app


def run(arguments: Sequence[str]) -> int:
    """Carry out one command line and return its exit code, with any error printed."""
    words, debug = _without_debug(list(arguments))
    try:
        if words in ASKS_FOR_IT:
            print(overview({name: verb.summary for name, verb in VERBS.items()}))
            code = 0
        else:
            from orrery.cli.calling import call

            code = call(build(words), words)
        close_output()
        return int(code)
    except BaseException as error:
        stop = cause(error)
        if not isinstance(stop, SystemExit):
            return report(stop, debug=debug, words=words)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """Take ``--debug`` out of the words before ``--``, which ends the flags."""
    end = words.index("--") if "--" in words else len(words)
    flags = [word for word in words[:end] if word != "--debug"]
    return flags + words[end:], len(flags) < end
