"""Tables of published papers, each row beside what Orrery computes."""
