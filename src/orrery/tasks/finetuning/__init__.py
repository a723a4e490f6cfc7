"""How tasks learn: recipes found from the data, floors, scores, findings, reports."""
