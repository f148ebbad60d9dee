"""Euclidean projections: on the simplex, and on the hull of all outputs of an oracle."""
