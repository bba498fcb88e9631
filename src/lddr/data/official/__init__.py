"""The field's published datasets, read from their official files: one reader per file format."""
