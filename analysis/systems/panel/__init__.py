"""What a panel's run shows: turns, votes, students, other rules, and its page."""
