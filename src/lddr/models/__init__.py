"""Variational autoencoders: networks x latents, and the names people know them by."""
