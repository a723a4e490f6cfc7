"""Write reference_scores.json: our own sentences, and what sacrebleu says of them.

    python tests/unit/scores/make_reference_scores.py

Each case has hypotheses, one or two references, and the settings of a metric; written beside are the score, the
signature and the versions. Run again only where a case is added: what is tested must not change with a library.
"""

import json
import platform
from pathlib import Path

import sacrebleu
from sacrebleu import metrics

TRAIN = (
    ["The night train leaves at 21:40 from platform 3.", "It doesn't stop before the border, does it?"],
    ["The night train departs at 21:40 from platform 3.", "It does not stop before the border, does it?"],
    ["At 21:40 the night train leaves from platform three.", "It won't stop before the border, will it?"],
)
GARDEN = (
    ["Im Garten steht ein alter Apfelbaum.", "Die Kinder spielen darunter", "", "Sie lachen laut!"],
    ["Im Garten steht ein alter Birnbaum.", "Die Kinder spielen unter dem Baum.", "Es regnet.", "Sie lachen laut!"],
    ["Ein alter Apfelbaum steht im Garten.", "Darunter spielen Kinder.", "Es regnet nicht.", "Laut lachen sie."],
)
LISTS = (
    ["a a a a b b", "x", "one two three four five six seven"],
    ["a b a b", "y", "seven six five four three two one"],
)
TURNED = (
    ["the small red house by the river", "we met there yesterday"],
    ["by the river the small red house", "yesterday we met there"],
)
HAN = (["今天天气很好,我们去公园。"], ["今天天气不错,我们去公园吧。"])
NUMBERS = (["It cost $1,250.50 (about 1.1k) - i.e. 5% more."], ["It cost $1,250.50, about 1.1k, i.e. 5 % more."])
SAME = (["Nothing differs here at all."], ["Nothing differs here at all."])

CASES = [
    ("BLEU", TRAIN, {}),
    ("BLEU", TRAIN[:2], {}),
    ("BLEU", TRAIN[:2], {"tokenize": "intl"}),
    ("BLEU", TRAIN[:2], {"tokenize": "none"}),
    ("BLEU", TRAIN, {"lowercase": True}),
    ("BLEU", GARDEN[:2], {}),
    ("BLEU", GARDEN, {"tokenize": "char"}),
    ("BLEU", GARDEN[:2], {"max_ngram_order": 2}),
    ("BLEU", LISTS, {}),
    ("BLEU", LISTS, {"smooth_method": "floor"}),
    ("BLEU", LISTS, {"smooth_method": "add-k"}),
    ("BLEU", LISTS, {"smooth_method": "none"}),
    ("BLEU", HAN, {"tokenize": "zh"}),
    ("BLEU", NUMBERS, {}),
    ("BLEU", NUMBERS, {"tokenize": "char"}),
    ("BLEU", SAME, {}),
    ("CHRF", GARDEN[:2], {}),
    ("CHRF", TRAIN, {"word_order": 2}),
    ("CHRF", HAN, {"lowercase": True}),
    ("CHRF", LISTS, {"char_order": 3, "beta": 1}),
    ("TER", TURNED, {}),
    ("TER", GARDEN, {}),
    ("TER", TRAIN[:2], {"case_sensitive": True}),
    ("TER", NUMBERS, {"normalized": True}),
]


def scored(name: str, texts: tuple[list[str], ...], settings: dict) -> dict:
    """Return a case with its score and signature."""
    metric = getattr(metrics, name)(**settings)
    hypotheses, *references = texts
    score = metric.corpus_score(hypotheses, references).score
    case = {"metric": name, "settings": settings, "score": score, "signature": str(metric.get_signature())}
    return {**case, "hypotheses": hypotheses, "references": references}


if __name__ == "__main__":
    content = {
        "made_by": f"sacrebleu {sacrebleu.__version__}, Python {platform.python_version()}",
        "cases": [scored(*case) for case in CASES],
    }
    file = Path(__file__).with_name("reference_scores.json")
    file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
