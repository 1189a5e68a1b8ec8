"""Rules that count ballots: definitions, and the same on many panels."""
