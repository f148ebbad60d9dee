"""Linear classifiers with scikit-learn's calls: one label, several, or one on an ordered scale."""
