"""Rounds over shards of the data."""
