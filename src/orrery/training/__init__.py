"""The training loop, its steps and its state: optimizers, schedules, precision, ranks."""
