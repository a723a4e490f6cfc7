"""Several trainings or measurements in one: comparisons, ladders of sizes, stages, speed, the demo."""
