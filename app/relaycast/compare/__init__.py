"""One trace under two designs, side by side."""
