"""Orrery's models under lm_eval (EleutherAI's evaluation harness), by the name ``orrery``.

``python -m orrery.evaluation.lm_eval run --model orrery --model_args pretrained=RUN --tasks hellaswag`` is ``lm_eval``
with that model known to it; a program calls `register` instead. lm_eval has no way to find models of other packages
itself. Its ``--apply_chat_template`` is refused: it passes conversations as text, in which nobody can tell a control
token from words that a user typed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orrery.errors import MachineError, UsageError
from orrery.schema.writing import DRAWING

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

NAME = "orrery"
MAX_GEN_TOKS = 256
_LONGEST = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
_DRAWN = tuple(name for name in DRAWING if name != "temperature")
_ROWS = 32
_UNCHOSEN = "cuda:0"


def register() -> type:
    """Make ``orrery`` known to lm_eval as a model, and return its class.

    Raises:
        MachineError: lm_eval is not installed.
    """
    try:
        from lm_eval.api.model import LM
        from lm_eval.api.registry import register_model
    except ImportError as error:
        raise MachineError(f"lm_eval is missing: {error}", "pip install lm_eval, beside Orrery") from None

    @register_model(NAME)
    class OrreryModel(LM):
        """A decoder of Orrery's as lm_eval asks for it."""

        def __init__(self, pretrained: str, **settings: Any) -> None:
            super().__init__()
            self._answers = LmEvalAnswers(pretrained, **settings)
            self._device = self._answers.lm.device

        def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
            """Return (log likelihood in nats, whether it is what greedy decoding writes) of each continuation."""
            return self._answers.likelihoods([request.args for request in requests])

        def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
            """Return the log likelihood of each whole text."""
            return self._answers.rolling([request.args[0] for request in requests])

        def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
            """Return what is written behind each context."""
            return self._answers.written([request.args for request in requests])

    return OrreryModel


class LmEvalAnswers:
    """What lm_eval's three kinds of requests ask of a model.

    Args:
        pretrained: a run, a checkpoint or a Hugging Face folder.
        batch_size: rows computed at once; ``auto`` is 32.
        max_batch_size: not used: rows are few enough by what their logits need.
        device: as for ``orrery.load``; ``cuda:0``, which lm_eval gives where nobody chose, is a GPU where there is one.
        dtype: as for ``orrery.load``; float32 where lm_eval gives none.
        max_length: tokens that are read at once, the model's context by default.
        seed: of draws.
    """

    def __init__(
        self,
        pretrained: str,
        batch_size: int | str = _ROWS,
        max_batch_size: int | None = None,
        device: str | None = None,
        dtype: str = "auto",
        max_length: int | None = None,
        seed: int = 1337,
    ) -> None:
        from orrery.language_model.load import load

        self.lm: LanguageModel = load(pretrained, "auto" if device in (None, _UNCHOSEN) else device, dtype)
        self.rows = _ROWS if str(batch_size).startswith("auto") else int(batch_size)
        self.longest = int(max_length) if max_length else self.lm.context
        self.seed = int(seed)
        if not 1 <= self.longest <= self.lm.context:
            raise UsageError(f"max_length={max_length}", f"give 1 to {self.lm.context:,}, the model's context")

    def likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, bool]]:
        """Return the log likelihood of each continuation, and whether each of its tokens is the most probable."""
        likelihoods = self.lm.likelihoods(pairs, batch_size=self.rows, longest=self.longest)
        return [(one.nats, one.greedy) for one in likelihoods]

    def rolling(self, texts: Sequence[str]) -> list[float]:
        """Return the log likelihood of each text, in windows as lm_eval's where it is longer than one."""
        return self.lm.text_likelihoods(texts, batch_size=self.rows, longest=self.longest)

    def written(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
        """Return the answer to each context, up to the first of its stop strings.

        Raises:
            UsageError: a setting that nothing here knows.
        """
        from orrery.evaluation.evaluated import answers

        kinds: dict[str, list[int]] = {}
        for place, (_, settings) in enumerate(requests):
            kinds.setdefault(repr(sorted(settings.items())), []).append(place)
        by_place: dict[int, str] = {}
        for places in kinds.values():
            stop, longest, sampling = drawing(requests[places[0]][1])
            said = answers(
                self.lm, [requests[place][0] for place in places], seeds=[self.seed + place for place in places],
                stop=stop, max_new_tokens=longest, batch_size=self.rows, **sampling,
            )  # fmt: skip
            by_place.update(zip(places, said, strict=True))
        return [by_place[place] for place in range(len(requests))]


def drawing(settings: Mapping[str, Any]) -> tuple[list[str], int, dict[str, Any]]:
    """Return the stop strings, the most tokens, and how tokens are drawn, of lm_eval's ``generation_kwargs``.

    Raises:
        UsageError: a setting that nothing here knows.
    """
    left = dict(settings)
    until = left.pop("until", None) or []
    lengths = [left.pop(name) for name in _LONGEST if name in left]
    temperature = float(left.pop("temperature", None) or 0)
    drawn = left.pop("do_sample", temperature > 0)
    temperature = (temperature or 1.0) if drawn else 0.0
    known: dict[str, Any] = {name: left.pop(name) for name in _DRAWN if name in left}
    if left:
        raise UsageError(f"generation_kwargs: {', '.join(left)}", "known: until, max_gen_toks, do_sample, temperature")
    sampling = {"temperature": temperature, **known} if temperature else {"temperature": temperature}
    return [until] if isinstance(until, str) else list(until), int(lengths[0]) if lengths else MAX_GEN_TOKS, sampling


def main() -> None:
    """Run ``lm_eval`` with the words of the command line, and with ``orrery`` among its models."""
    register()
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()


if __name__ == "__main__":
    main()
