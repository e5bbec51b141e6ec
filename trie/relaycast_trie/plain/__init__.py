"""Tries in plain Python over a database of nodes: built whole, read, written, recorded."""
