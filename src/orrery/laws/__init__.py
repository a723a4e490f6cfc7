"""The equalities that every family and every fast path must keep; `orrery verify` runs them."""
