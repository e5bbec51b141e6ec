"""Proofs as values: storage proofs, compact proofs, statement proofs, and how each is verified."""
