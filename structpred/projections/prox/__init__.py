"""Proximal operators, one a file: prox(x, step) = argmin_z |z - x|^2 / 2 + step f(z) for the f of the file's name."""
