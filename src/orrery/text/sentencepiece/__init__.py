"""SentencePiece models: read from their ``.model`` file, and run exactly as SentencePiece runs them."""
