"""The core: the protocols that people extend, and what all share: sparse vectors, weights, packed scores, results."""
