"""What verbs print as tables and sentences."""
