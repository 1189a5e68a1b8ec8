"""Tables of a run, what a branch takes over, and printed figures."""
