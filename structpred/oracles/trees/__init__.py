"""What the oracles of trees share: kernels, scratch, sums over trees, trees under constraints."""
