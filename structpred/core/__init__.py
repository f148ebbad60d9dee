"""The core: what an oracle is, how corpora are packed, and how features, oracle and loss make a task."""
