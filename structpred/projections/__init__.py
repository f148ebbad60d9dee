"""Projections, a family a file: simplices, balls, cones, a box with an equality, marginals of trees, the hull of outputs."""
