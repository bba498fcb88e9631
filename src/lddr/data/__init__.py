"""Datasets: images by number, and the factors of variation behind them."""
