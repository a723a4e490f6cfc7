"""What the recommendation of next items shares: histories as ids, rankings of all items, simple methods, new items."""
