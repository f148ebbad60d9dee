"""What trainers share that look at one instance at a time."""
