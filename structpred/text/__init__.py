"""Text made for people: HTML that is safe, tables, suggestions for misspelled names."""
