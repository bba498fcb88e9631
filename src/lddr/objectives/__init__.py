"""Objectives, one file each: what is added to the reconstruction, and the network of its own that one may have."""
