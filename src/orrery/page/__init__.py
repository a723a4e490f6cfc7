"""The page that shows the inside of a model: served, in a notebook, or saved as one file."""
