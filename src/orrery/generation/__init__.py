"""How a model writes: samplers, beams, guesses, forms, and the batching engine."""
