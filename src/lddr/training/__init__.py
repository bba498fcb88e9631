"""Training: the step, its batches and optimizers, checkpoints that resume exactly, accelerators."""
