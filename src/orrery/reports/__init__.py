"""Figures and pages without a dependency; and observers, through which a run is reported elsewhere."""
