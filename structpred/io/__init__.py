"""Readers and writers of data files, and feature templates; it knows nothing of learning."""
