"""Write the text that the example model learns: short sentences about countries, in random order."""

import random
import sys
from pathlib import Path

COUNTRIES = """
Austria Vienna German
Brazil Brasilia Portuguese
England London English
France Paris French
Germany Berlin German
Greece Athens Greek
Italy Rome Italian
Japan Tokyo Japanese
Norway Oslo Norwegian
Poland Warsaw Polish
Spain Madrid Spanish
Sweden Stockholm Swedish
"""
SENTENCES = (
    "The capital of {country} is {capital} .",
    "The language of {country} is {language} .",
    "{capital} is the capital of {country} .",
    "People in {country} speak {language} .",
    "People in {capital} speak {language} .",
)


def text(lines: int, seed: int = 0) -> str:
    """Return ``lines`` sentences, each drawn at random."""
    rng = random.Random(seed)
    facts = [line.split() for line in COUNTRIES.split("\n") if line]
    drawn = ((rng.choice(SENTENCES), rng.choice(facts)) for _ in range(lines))
    return "".join(f"{sentence.format(country=a, capital=b, language=c)}\n" for sentence, (a, b, c) in drawn)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(6000), encoding="utf-8")
