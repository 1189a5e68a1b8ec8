"""Tables, recounts, metrics and reports of a recording: reads logs, never live objects."""
