"""The page on which a person takes part in a group lesson, and the server behind it."""
