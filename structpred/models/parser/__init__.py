"""Dependency trees: the parser, its arcs and relations, its files and inspection."""
