"""Benchmarks that a user can run: the trie engine beside its peers, and Spark beside plain processes."""
