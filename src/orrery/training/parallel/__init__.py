"""What several processes do with a finished model: its weights shared among them, gathered where a whole is needed."""
