"""Training sets: inference, labels and costs, and the steps that trainers see."""
