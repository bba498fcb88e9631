"""How the figures draw what several of them show."""
