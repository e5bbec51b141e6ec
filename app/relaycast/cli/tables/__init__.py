"""What verbs print: tables, sentences, progress."""
