"""The kinds of models that the shell knows: a file each, found by walking this package."""
