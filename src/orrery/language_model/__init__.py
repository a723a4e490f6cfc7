"""The model as a user meets it: text in, and text, scores and the inside out."""
