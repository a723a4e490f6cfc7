"""Folders and files of others, read, saved, exported and compared: Hugging Face, GGUF, peft, word2vec."""
