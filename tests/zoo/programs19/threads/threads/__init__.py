"""Which reply comes next in a thread? Trained by several processes."""
