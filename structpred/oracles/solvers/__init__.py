"""The solvers of other projects that oracles call."""
