"""Label sequences: the labeler of chains, its inputs, constraints, inspection and streams."""
