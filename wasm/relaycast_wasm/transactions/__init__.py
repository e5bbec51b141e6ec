"""Transactions for real runtimes: written from their metadata, and signed."""
