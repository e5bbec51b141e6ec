"""A chain as a node serves it: its blocks, its states then and now, its proofs, and what comes next."""
