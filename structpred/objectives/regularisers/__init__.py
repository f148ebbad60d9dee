"""Regularisers, one file each. A new file here is all that a new one needs."""
