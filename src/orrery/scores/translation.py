"""Scores of translations against references: corpus BLEU, chrF and TER, by sacrebleu, with its signature.

Each is a function of counts that add over sentences, so that intervals and paired tests read no text twice.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from orrery.errors import DataError, MachineError
from orrery.scores.resampled import AdditiveScore, Floats
from orrery.settings import install


def bleu(hypotheses: Sequence[str], *references: Sequence[str], **settings: Any) -> AdditiveScore:
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


def chrf(hypotheses: Sequence[str], *references: Sequence[str], **settings: Any) -> AdditiveScore:
    """Return chrF, the F2 score of character n-grams (Popović 2015); ``word_order=2`` is chrF++.

    Arguments and errors as in ``bleu``.
    """
    return _score("CHRF", hypotheses, references, settings)


def ter(hypotheses: Sequence[str], *references: Sequence[str], **settings: Any) -> AdditiveScore:
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
    kind: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], settings: dict[str, Any]
) -> AdditiveScore:
    check_counts(hypotheses, references)
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MachineError("sacrebleu is not installed", install("eval")) from error
    metric = getattr(metrics, kind)(**settings)
    # The two methods are those of sacrebleu.significance, which draws sentences again in the same way.
    counts = metric._extract_corpus_statistics(list(hypotheses), [list(lines) for lines in references])
    sums = np.array(counts, np.float64)

    def of(total: Floats) -> float:
        return float(metric._compute_score_from_stats(total.tolist()).score)

    name, lower = metric._compute_score_from_stats(sums.sum(0).tolist()).name, kind == "TER"
    return AdditiveScore(name, str(metric.get_signature()), sums, of, digits=2, higher_is_better=not lower)
