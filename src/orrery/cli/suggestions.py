"""What may have been meant by a flag that a verb does not have."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyclopts import CycloptsError, UnknownCommandError, UnknownOptionError, UnusedCliTokensError

from orrery.schema.keys import Known
from orrery.schema.other_names import meant, plain
from orrery.schema.unknown import UnknownSettingError

if TYPE_CHECKING:
    from cyclopts import ArgumentCollection

VERBS_ELSEWHERE = {
    "run": "generate", "predict": "generate", "inference": "generate", "infer": "generate", "complete": "generate",
    "sample": "generate", "eval": "evaluate", "benchmark": "bench", "convert": "export",
    "quantize": "quantise", "summarize": "summarise", "distill": "distil", "neighbors": "neighbours",
    "api": "serve", "server": "serve", "rlhf": "ppo", "orpo": "dpo", "kto": "dpo", "rm": "reward", "fit": "train",
    "pretrain": "train", "fine-tune": "finetune", "lora": "finetune", "tokenize": "tokenizer", "ner": "tag",
    "embeddings": "embed", "encode": "embed", "perplexity": "evaluate", "ppl": "evaluate", "version": "info",
    "env": "info", "inspect": "see", "visualize": "see", "download": "data fetch", "diff": "parity",
    "merge": "average", "rerank": "rank", "reranker": "rank", "quantization": "quantise", "adapter": "finetune",
    "speculative decoding": "generate", "repetition penalty": "generate",
}  # fmt: skip
"""What verbs are called elsewhere, and here."""


def of_parser(error: "CycloptsError", words: Sequence[str], see: str) -> tuple[str, str] | None:
    """Return what is wrong and what to do, where a flag or a verb is none; nothing for other errors of the parser.

    Args:
        error: the parser's.
        words: the command line.
        see: names the page of help.
    """
    if isinstance(error, UnknownCommandError) and not error.command_chain and error.unused_tokens:
        verb = VERBS_ELSEWHERE.get(error.unused_tokens[0].lower())
        return None if verb is None else (f"unknown command {error.unused_tokens[0]}", f"did you mean 'orrery {verb}'?")
    if isinstance(error, UnknownOptionError):
        shown = spelled(error.argument_collection)
        word = (error.token.keyword or error.token.value).partition("=")[0]
    elif isinstance(error, UnusedCliTokensError) and error.app and error.app.default_command:
        shown = spelled(error.app.assemble_argument_collection())
        # A flag that stood where a text may stand was taken for one, and its value was left over.
        wrong = [word for word in words if word.startswith("--") and plain(word) not in shown]
        if not wrong:
            return None
        word = wrong[0]
    else:
        return None
    return f"unknown option {word}", _advice(word, shown, Known(flags=shown), see)


def parser_of(words: Sequence[str]) -> "ArgumentCollection | None":
    """Return what the verb of a command line takes, and of ``evaluate`` what the task takes."""
    from orrery.cli.evaluate.app import parser_of_task, tasks
    from orrery.cli.parser import build

    if words and words[0] == "evaluate" and (task := next((word for word in words[1:3] if word in tasks()), None)):
        return parser_of_task(task).assemble_argument_collection()
    _, apps, _ = build(words).parse_commands(list(words))
    return apps[-1].assemble_argument_collection() if apps[-1].default_command else None


def of_settings(error: UnknownSettingError, words: Sequence[str], see: str) -> tuple[str, str]:
    """Return the same for a flag that a verb with further settings, or with texts, does not know."""
    shown = spelled(parser_of(words))
    known = Known(flags=shown, schemas=error.known.schemas)
    return f"unknown option {error.word}", _advice(error.word, shown, known, see, error.otherwise)


def spelled(arguments: "ArgumentCollection | None") -> dict[str, str]:
    """Return the settings of a verb by their plain names, as they are written: a flag, or a place in capitals."""
    names: dict[str, str] = {}
    for argument in arguments or ():
        if argument.field_info.kind is not argument.field_info.VAR_POSITIONAL:
            long = [name for name in argument.names if name[:1] != "-" or name.startswith("--")]
            negative = {f"--no-{name[2:]}" for name in long}
            names |= {plain(name): name for name in long if name not in negative and plain(name).isidentifier()}
    return names


def _advice(word: str, shown: dict[str, str], known: Known, see: str, otherwise: str = "") -> str:
    name = meant(word, known)
    if name is None:
        return f"{otherwise}; {see}" if otherwise else see
    flag = shown.get(name, f"--{name}")
    if not flag.startswith("--"):
        return f"{flag} stands in its place, without a flag; {see}"
    return f"did you mean {flag}? {see}"
