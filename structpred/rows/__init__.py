"""Rows of linear models: training sets without structure, and losses of their scores."""
