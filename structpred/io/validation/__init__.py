"""All problems of a data file at once."""
