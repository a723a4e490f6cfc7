"""Classes, entities, answers, translations and other tasks: fine-tuned on labels, and asked in Python."""
