"""What the commands do for structures of a user's own."""
