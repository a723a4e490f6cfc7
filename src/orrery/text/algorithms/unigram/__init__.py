"""Training of Unigram vocabularies: seed pieces, expectation maximisation and pruning, all on counted words."""
