"""Several trainings in one recipe: each stage begins from those before it, and a report compares them."""
