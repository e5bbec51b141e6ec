"""Setups of the experiments: exact tries, feeds, simulations, contests, readers of the faces."""
