"""What an exported program says in place of this file: who wrote it, and the weights that belong to it."""

#: the version of structpred that wrote the program
VERSION = ""
#: the file of the weights, beside the program
WEIGHTS = ""
#: the SHA-256 of that file
SHA256 = ""
