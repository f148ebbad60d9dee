"""What is minimised: part losses, and surrogates that turn an oracle's answer into a step and a value."""
