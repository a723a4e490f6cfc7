"""What stands in the place of an answer to an input that has nothing to be answered."""

NO_TEXT = "(no text)"
