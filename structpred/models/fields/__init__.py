"""Pairwise random fields: label sets, label hierarchies and graphs."""
