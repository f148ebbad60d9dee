"""Joint feature maps: from weights to part scores and back, one structure per file."""
