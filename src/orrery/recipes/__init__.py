"""The settings of a run, as data: closed, checked, read from YAML, environment and flags."""
