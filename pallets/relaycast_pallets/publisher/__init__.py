"""The publisher pallet: a parachain's call that sends values to the relay chain."""
