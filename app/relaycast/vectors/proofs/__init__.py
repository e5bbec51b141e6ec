"""The vectors of tries and proofs."""
