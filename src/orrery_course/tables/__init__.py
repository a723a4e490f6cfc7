"""Tables of the lectures: one-hot retrieval, a dictionary from parallel text, tokenizers on parallel text."""
