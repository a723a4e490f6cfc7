"""Which part of a rendered conversation is a control token, who wrote the rest, and what of it the assistant wrote."""
