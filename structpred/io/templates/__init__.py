"""Feature templates, and the featurizers that apply them."""
