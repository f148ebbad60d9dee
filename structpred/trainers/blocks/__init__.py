"""What block-coordinate and corrective trainers share."""
