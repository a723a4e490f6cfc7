"""Checked settings, and parts found by name."""
