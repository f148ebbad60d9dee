"""Predict, then optimise: the estimator, what it reads, and how it is trained."""
