"""A long history in segments: a pass over all blocks that leaves a checkpoint where each segment begins."""
