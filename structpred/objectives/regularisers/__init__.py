"""Regularisers, a family a file. A new file here is all that a new one needs."""
