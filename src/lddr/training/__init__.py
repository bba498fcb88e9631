"""Training: the loop, checkpoints that resume exactly, and what is written and shown on the way."""
