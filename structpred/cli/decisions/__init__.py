"""Decision models in the shell: what their commands do."""
