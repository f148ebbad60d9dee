"""Sequence labellers in the shell: data by format, training, results and pages; kinds/sequences.py describes them."""
