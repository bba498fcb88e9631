"""Latent families, one file each: settings, maths, noise, values, supervised losses; everybody else asks them."""
