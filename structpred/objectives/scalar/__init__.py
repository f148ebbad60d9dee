"""Losses of one score and one target, one file each: a new file here is all that a new one needs."""
