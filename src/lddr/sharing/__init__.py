"""Models to give away: a folder with nothing but what others need, a card, and the Hugging Face Hub."""
