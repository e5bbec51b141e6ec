"""The parachain system: the inherent with relay chain data, and how much of a block it may use."""
