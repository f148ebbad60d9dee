"""Data as programs hold them: sequences, sentences, hierarchies, and features turned into numbers."""
