"""Pages: what stands on which, and the HTML it becomes."""
