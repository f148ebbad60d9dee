"""Slack rescaling: searches for the output with the largest loss times margin violation, and the surrogate that trainers use."""
