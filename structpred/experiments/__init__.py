"""The experiments of papers, run again with the paper's figures beside: a file each, found by walking this package."""
