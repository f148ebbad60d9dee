"""Inference oracles: one structure, one file. To add one, write a file here or anywhere else; there is no registry."""
