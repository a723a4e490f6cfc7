"""WordPiece: merge the pair that raises the likelihood of a unigram model of the words most, again and again.

Paper: Schuster and Nakajima 2012, section 3. To first order a merge of ab gains count(ab) log(N count(ab) /
(count(a) count(b))): frequent pairs that also belong together.

Differs from the library's trainer of that name, which merges the most frequent pair and so is BPE, and from the rule
that is often told for it, the greatest count(ab) / (count(a) count(b)), which merges the rarest letters first.
Pieces inside a word begin with ``##``; encoding takes the longest piece that fits (Wu et al. 2016), which the library
runs.
"""

from collections.abc import Iterator

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from orrery.text.algorithms.likelihood import learn
from orrery.text.chunks import word_counts

UNKNOWN = "[UNK]"
LONGEST = 100
"""The engine makes a longer word unknown, so training leaves it out."""


def train(texts: Iterator[str], vocabulary: int, end: str) -> Tokenizer:
    """Learn pieces until the vocabulary (unknown, characters, merges, end) is full or no merge gains."""
    rule = pre_tokenizers.BertPreTokenizer()
    counts = word_counts(texts, rule)
    kept = {word: count for word, count in counts.items() if len(word) <= LONGEST}
    pieces = [UNKNOWN, *(piece for piece in learn(kept, vocabulary - 2) if piece != end)]
    model = models.WordPiece(
        {piece: id for id, piece in enumerate(pieces)}, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = rule
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    tokenizer.add_special_tokens([end])
    return tokenizer
