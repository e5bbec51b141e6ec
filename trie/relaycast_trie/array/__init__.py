"""Tries in numpy arrays, worked by compiled kernels: the same bytes as the plain engine, in batches."""
