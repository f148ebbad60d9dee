"""Learning problems that are not convex: joint minimisation over a margin classifier and over labels that are missing."""
