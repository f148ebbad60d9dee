"""Kernels between positions of sequences: labelers with a maximum margin, and by Gaussian processes."""
