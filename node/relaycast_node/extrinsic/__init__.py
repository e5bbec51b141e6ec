"""Extrinsics: their bytes, who signed them, whether a chain takes them, and the pool in which they wait for a block."""
