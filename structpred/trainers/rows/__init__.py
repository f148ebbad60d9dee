"""Kernels and steps of trainers of rows."""
