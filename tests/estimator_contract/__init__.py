"""What scikit-learn asks of estimators, asked of estimators of sequences."""
