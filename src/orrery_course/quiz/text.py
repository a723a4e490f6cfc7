"""Questions about text: tokens, gaps, padding, and what a model writes."""

import string
from collections.abc import Mapping

import torch

from orrery.data.batches.padding import PAD, pad, truncate, word_vocabulary
from orrery.text.algorithms.words import of_words
from orrery.text.tokenizer import Tokenizer
from orrery_course.quiz._question import Question, Wrong, number, numbers, question

ONE_SIDED = {"an apple": 0.02, "a banana": 0.01, "popcorns": 0.0001}
TWO_SIDED = {"house": 0.01, "mansion": 0.001, "movie theater": 0.2}
HENRY = "Henry is givin' a lectrue on transformers"
KNOWN = "henry is giving a lecture on transformers"
SENTENCES = (
    "In the hole in the ground there lived a hobbit",
    "It is our choices that show what we truly are",
    "It was the best of times it was the worst of times",
    "Even miracles take a little time",
    "The more that you read the more things you will know",
    "We'll always have each other no matter what happens",
    "The sun did not shine it was too wet to play",
    "The important thing is to never stop questioning",
)
"""The eight sentences of deck S3."""
BLOCK = 10


def shares(probabilities: Mapping[str, float]) -> list[float]:
    """Return what is left to each candidate where no other can come, in percent."""
    return [100 * one / sum(probabilities.values()) for one in probabilities.values()]


@question("cloze", "S4", "I was eating __")
def cloze() -> Question:
    """Ask for shares of probabilities."""
    found = shares(ONE_SIDED)
    uniform = [100 / len(ONE_SIDED)] * len(ONE_SIDED)
    wrong = (
        Wrong(" ".join(numbers([100 * p for p in ONE_SIDED.values()])), "those are the shares among all words, "
                                                                        "and sum to "
              f"{number(100 * sum(ONE_SIDED.values()))} %; among three they sum to 100"),
        Wrong(" ".join(numbers(uniform)), "that knows nothing of the text"),
    )  # fmt: skip
    why = "Each over the sum of the three: what a model says of candidates is their ratio."
    asks = (
        f"I was eating __: {', '.join(f'{c} {p:g}' for c, p in ONE_SIDED.items())}. What are their shares "
        "among the three, in percent?"
    )
    return Question(asks, "numbers", numbers(found), wrong, why, "orrery course S4 cloze")


@question("cloze-both-sides", "S4", "I was in a __. I was eating popcorns")
def cloze_both_sides() -> Question:
    """Ask what the later sentence decides."""
    found = dict(zip(TWO_SIDED, shares(TWO_SIDED), strict=True))
    best = max(found, key=found.__getitem__)
    before = max((word for word in found if word != best), key=found.__getitem__)
    wrong = (Wrong(before, "from the words before the gap alone it may be; popcorns come behind it"),
             Wrong("it cannot be said", f"the probabilities say it: {number(found[best])} % for {best}"))  # fmt: skip
    why = (
        f"{', '.join(f'{word} {number(share, 3)} %' for word, share in found.items())}. A model that reads both "
        "sides, as BERT, sees the second sentence from the gap; one that reads on, as GPT, has it in the probability "
        "of the whole text with each candidate put in."
    )
    asks = f"I was in a __. I was eating popcorns: {', '.join(f'{c} {p:g}' for c, p in TWO_SIDED.items())}. Which fits?"
    return Question(asks, "one", (best,), wrong, why, "orrery course S4 cloze")


@question("padding-row", "S3", "Padding")
def padding_row() -> Question:
    """Ask for the ids of a row of a batch."""
    rows = truncate(SENTENCES, BLOCK)
    vocabulary = word_vocabulary(rows)
    ids = pad(rows, vocabulary, BLOCK)[2]
    late = word_vocabulary([sentence.split() for sentence in SENTENCES])
    other = pad(rows, late, BLOCK)[2]
    wrong = (
        Wrong(
            " ".join(map(str, other)),
            f"that numbers the words before the cut: {len(late)} instead of {len(vocabulary)}",
        ),
        Wrong(
            " ".join(map(str, [*ids[:-1], vocabulary[PAD]])), "nothing is padded here: ten words are left after the cut"
        ),
    )
    known = ", ".join(f"{word} {vocabulary[word]}" for word in dict.fromkeys(rows[2]))
    asks = f'Rows of {BLOCK} words; the vocabulary has {known}. What are the ids of "{SENTENCES[2]}"?'
    why = (
        f'Truncated to {BLOCK} words; "the" is {vocabulary["the"]} each time. A shorter row would end with '
        f"{vocabulary[PAD]}, of {PAD}."
    )
    return Question(asks, "numbers", tuple(map(str, ids)), wrong, why, "orrery course S3 padding")


@question("unknown-words", "S3", "Tokens")
def unknown_words() -> Question:
    """Ask which words have no token."""
    tokenizer = Tokenizer(of_words(["<OOV>", *KNOWN.split()]).to_str())
    written = HENRY.lower().split()
    unknown = [word for word in written if tokenizer.token(tokenizer.encode(word)[0]) == "<OOV>"]
    wrong = (
        Wrong(unknown[-1], "the other one misses its last letter, and is another word to a table of words"),
        Wrong(" ".join(["transformers", *unknown]), "transformers is in the vocabulary"),
    )
    why = (
        f"A table of words knows exactly its words: {' and '.join(unknown)} become <OOV>. Pieces of words "
        "have no such hole."
    )
    asks = f'The vocabulary has the words of "{KNOWN}". Which words of "{HENRY}" become <OOV>? Type them.'
    return Question(asks, "words", tuple(unknown), wrong, why, "orrery course S3 words")


@question("next-letters", "S4", "hello")
def next_letters() -> Question:
    """Ask for the targets of a model over letters."""
    word = "hello"
    inputs, targets = word[:-1], word[1:]
    after = sorted({b for a, b in zip(inputs, targets, strict=True) if a == "l"})
    wrong = (
        Wrong(" ".join(inputs), "those are the inputs: each is to say the letter behind it"),
        Wrong(" ".join(word[::-1][1:]), "that reads backwards"),
    )
    why = (
        f"Each letter predicts the next. Behind l comes {' or '.join(after)}: the letter alone does not say "
        "it, the state does."
    )
    asks = (
        f'A model over letters reads {" ".join(inputs)} of "{word}". What are its targets? Type the letters '
        "with spaces."
    )
    return Question(asks, "words", tuple(targets), wrong, why, "orrery course S4 hello")


@question("table-rows", "S1", "Tokens to vectors")
def table_rows() -> Question:
    """Ask for what an id selects."""
    ids, vocabulary, width = [5, 4000, 10_532, 2224], 50_000, 8
    table_VD = torch.randn(vocabulary, width, generator=torch.Generator().manual_seed(0))
    hot_LV = torch.nn.functional.one_hot(torch.tensor(ids), vocabulary).float()
    chosen = (hot_LV @ table_VD == table_VD[ids]).all()
    right = "the rows of the table with these numbers" if chosen else "other rows"
    wrong = (
        Wrong("the columns with these numbers", f"the table is {vocabulary:,} x {width}: it has {width} columns"),
        Wrong("the numbers themselves, scaled", "4,000 is no more than 5; ids are names"),
    )
    why = "Looking up is multiplying by a one-hot vector, number for number; it only skips the zeros."
    asks = f'"Thanks for all the" has the ids {ids}. What does the embedding table give for them?'
    return Question(asks, "one", (right,), wrong, why, "orrery course S1 rows")


@question("greedy", "S3", "Greedy decoding")
def greedy() -> Question:
    """Ask whether greedy decoding finds the most probable text."""
    first = {"the": 0.6, "a": 0.4}
    second = {"the": {"end": 0.5, "way": 0.5}, "a": {"dog": 0.9, "cat": 0.1}}
    paths = {f"{a} {b}": p * q for a, p in first.items() for b, q in second[a].items()}
    start = max(first, key=first.__getitem__)
    taken = f"{start} {max(second[start], key=second[start].__getitem__)}"
    best = max(paths, key=paths.__getitem__)
    says_so = "it does" if taken == best else "it does not"
    others = {"it does": "each step takes the best, but the first step cannot know what follows",
              "it does not": "here both agree"}  # fmt: skip
    wrong = tuple(Wrong(word, why) for word, why in others.items() if word != says_so)
    why = (
        f'It writes "{taken}" with {number(paths[taken])}, and "{best}" has {number(paths[best])}: beams keep '
        "more than one beginning."
    )
    asks = (
        f"First word: {listed(first)}. Behind it: {'; '.join(f'{a}: {listed(b)}' for a, b in second.items())}. "
        "Does greedy decoding find the most probable two words?"
    )
    return Question(asks, "one", (says_so,), wrong, why, "orrery course S3 greedy")


def listed(probabilities: Mapping[str, float]) -> str:
    """Return words with their probabilities, as one says them."""
    return ", ".join(f"{word} {p:g}" for word, p in probabilities.items())


@question("letters-or-words", "S3", "Character tokens")
def letters_or_words() -> Question:
    """Ask what letters as tokens cost."""
    letters = [character for character in HENRY.lower() if character in string.ascii_lowercase + "' "]
    wrong = (
        Wrong(str(len(HENRY.split())), "those are its words"),
        Wrong(
            str(len([c for c in letters if c != " "])),
            "the slide leaves the spaces out; they are characters too, or the words cannot be told apart",
        ),
    )
    why = (
        f"{len(letters)} places instead of {len(HENRY.split())}: nothing is unknown, and attention has "
        f"{(len(letters) / len(HENRY.split())) ** 2:.0f} times as many scores."
    )
    asks = f'How many character tokens does "{HENRY}" have?'
    return Question(asks, "numbers", (str(len(letters)),), wrong, why, "orrery course S3 characters")
