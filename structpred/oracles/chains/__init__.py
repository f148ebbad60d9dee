"""What the oracles of chains share: kernels and scratch."""
