"""Drivers of other programs, run beside ours for the comparison."""
