"""Pipelines from words to trees in the shell: what they have beside parsers; kinds/pipelines.py describes them."""
