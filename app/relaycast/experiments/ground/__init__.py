"""What experiments measure on: exact tries, feeds, simulations, contests, readers of the faces."""
