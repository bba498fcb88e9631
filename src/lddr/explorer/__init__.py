"""The web page over run folders: list runs, move the latents of a model, compare two models, read scores."""
