"""The model as a user meets it: text in; text, scores and the inside out."""
