"""What the oracles of decisions share: their kernels, and batches of instances sorted by shape."""
