"""A model and labelled data in, a model that answers out: tasks, recipes found from the data, scores, reports."""
