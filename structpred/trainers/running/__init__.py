"""What every training run shares beside the loop: checkpoints, bounds, progress, streams."""
