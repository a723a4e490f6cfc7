"""A recipe carried out: parts assembled, a run begun or resumed, the finished model written."""
