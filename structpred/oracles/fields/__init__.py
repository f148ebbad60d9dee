"""What the oracles of pairwise random fields share: kernels, links, relaxations."""
