"""The networks of the paper's tables and the autoencoder made of them, with layers that are fast on the CPU."""
