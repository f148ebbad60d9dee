"""Learning algorithms. Each is one file, written once over a task; none knows a structure."""
