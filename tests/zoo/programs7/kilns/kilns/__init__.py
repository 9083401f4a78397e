"""Temperature fields inside a kiln from sensors on its wall."""
