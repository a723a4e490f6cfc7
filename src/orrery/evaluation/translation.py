"""Scores of translations against references: corpus BLEU, chrF and TER, by sacrebleu, with its signature."""

from collections.abc import Sequence
from typing import Any

from orrery.errors import DataError, MachineError
from orrery.evaluation.scored import Scored


def bleu(hypotheses: Sequence[str], *references: Sequence[str], **settings: Any) -> Scored:
    """Return corpus BLEU (Papineni et al. 2002) of detokenised, cased text, tokenised as "13a" (Post 2018).

    Args:
        hypotheses: one a sentence.
        references: one or more translations of every sentence.
        settings: sacrebleu's own, such as ``tokenize="char"``.

    Raises:
        DataError: nothing to score, or the numbers of lines differ.
        MachineError: sacrebleu is not installed.
    """
    return _score("BLEU", hypotheses, references, settings)


def chrf(hypotheses: Sequence[str], *references: Sequence[str], **settings: Any) -> Scored:
    """Return chrF, the F2 score of character n-grams (Popović 2015); ``word_order=2`` is chrF++.

    Arguments and errors as in ``bleu``.
    """
    return _score("CHRF", hypotheses, references, settings)


def ter(hypotheses: Sequence[str], *references: Sequence[str], **settings: Any) -> Scored:
    """Return TER, edits with shifts of phrases over the reference's length (Snover et al. 2006): lower is better.

    Arguments and errors as in ``bleu``; in small letters unless ``case_sensitive``.
    """
    return _score("TER", hypotheses, references, settings)


def check_counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raise `DataError` unless there is something to score and every reference has as many texts."""
    if not hypotheses or not references:
        raise DataError(f"{len(hypotheses)} hypotheses, {len(references)} references", "give at least one of each")
    for texts in references:
        if len(texts) != len(hypotheses):
            message = f"{len(hypotheses):,} hypotheses for {len(texts):,} references"
            raise DataError(message, "give one line for each sentence")


def _score(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], settings: dict[str, Any]
) -> Scored:
    check_counts(hypotheses, references)
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MachineError("sacrebleu is not installed", "pip install 'orrery[eval]'") from error
    metric = getattr(metrics, name)(**settings)
    found = metric.corpus_score(list(hypotheses), [list(lines) for lines in references])
    return Scored(found.name, float(found.score), str(metric.get_signature()))
