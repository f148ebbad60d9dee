"""Dependency parsers in the shell: training, parsing, scores and pages; kinds/dependencies.py describes them."""
