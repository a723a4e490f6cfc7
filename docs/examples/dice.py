"""A question of a lecturer's own, for ``orrery with docs/examples/dice.py quiz dice``."""

from orrery_course.quiz import Question, Wrong, question


@question("dice", "S4", "Exercise 3")
def dice() -> Question:
    """Ask for the mean of a die."""
    faces = range(1, 7)
    mean, middle = sum(faces) / len(faces), len(faces) / 2
    wrong = (Wrong(f"{middle:g}", "that is half of the number of faces; they begin with 1"),)
    return Question("What is the mean of a die?", "numbers", (f"{mean:g}",), wrong, f"{sum(faces)} over {len(faces)}.")
