"""Running a study over its grid: recording, replaying, verifying, and the log that comes of it."""
