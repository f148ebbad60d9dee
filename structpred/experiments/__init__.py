"""The experiments of papers, run again with the paper's figures next to them: a file each, found by walking this package."""
