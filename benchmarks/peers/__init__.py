"""Drivers of other programs, run next to ours for the comparison."""
