"""Datasets: images by number, and the factors of variation behind them."""

FITS = ("pad", "crop", "stretch", "legacy")  # how pictures that are not square become so
SIDES = (16, 32, 64, 128)  # that the networks take
