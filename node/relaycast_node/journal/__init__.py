"""What is put into served chains, on disk, so that they go on after a restart."""
