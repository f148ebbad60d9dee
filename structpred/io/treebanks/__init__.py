"""Treebanks: CoNLL-X, CoNLL-2007 and CoNLL-U, read, checked and written."""
