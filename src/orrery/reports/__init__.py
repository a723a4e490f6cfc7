"""Figures and pages without a dependency."""
