"""Write small labelled files about the countries of the other examples: topics of sentences, and names in them."""

import json
import random
import sys
from pathlib import Path

FACTS = (
    ("Austria", "Vienna", "German"), ("Brazil", "Brasilia", "Portuguese"), ("England", "London", "English"),
    ("France", "Paris", "French"), ("Greece", "Athens", "Greek"), ("Italy", "Rome", "Italian"),
    ("Japan", "Tokyo", "Japanese"), ("Norway", "Oslo", "Norwegian"), ("Sweden", "Stockholm", "Swedish"),
)  # fmt: skip
TOPICS = {
    "capital": ("The capital of {country} is {capital} .", "{capital} is the capital of {country} ."),
    "language": ("The language of {country} is {language} .", "People in {capital} speak {language} ."),
}


def rows(count: int, seed: int) -> tuple[list[dict[str, str]], list[dict[str, list[str]]]]:
    """Return sentences with their topics, and sentences with a tag for each word."""
    rng = random.Random(seed)
    topics, tags = [], []
    for _ in range(count):
        topic = rng.choice(sorted(TOPICS))
        country, capital, language = rng.choice(FACTS)
        text = rng.choice(TOPICS[topic]).format(country=country, capital=capital, language=language)
        names = {country: "B-country", capital: "B-city"}
        topics.append({"text": text, "label": topic})
        tags.append({"words": text.split(), "tags": [names.get(word, "O") for word in text.split()]})
    return topics, tags


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, content in zip(("topics.jsonl", "names.jsonl"), rows(200, 0), strict=True):
        lines = [json.dumps(row) + "\n" for row in content]
        (folder / name).write_text("".join(lines), encoding="utf-8")
