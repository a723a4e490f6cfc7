"""How pages of tests are said to be made, always the same."""

from orrery.reports.making import COMMAND, Making

VERSIONS = (("Orrery", "0.1.0"), ("torch", "2.0"), ("Python", "3.11"))
MADE = Making(COMMAND, "orrery demo --seed 7", "2026-11-26", VERSIONS)
