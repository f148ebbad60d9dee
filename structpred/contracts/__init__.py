"""What every oracle, feature map and loss must keep, checked and said in plain words."""
