"""Numbers that are printed, as claims: each with an id, a question and what gave it."""
