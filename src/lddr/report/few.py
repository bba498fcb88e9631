"""What rests on a few runs of a model only says so by a mark, in tables and in figures."""

FEW = 5  # runs from which on a median is shown without a mark, and as a violin
MARK = "△"
MEANING = "of fewer than five runs of a model: too few to conclude anything from"


def few_mark(count: int) -> str:
    """The mark, if these are few."""
    return MARK if count < FEW else ""


def few_told(*texts: str) -> str:
    """A sentence that explains the mark, if one of these texts has it."""
    return f" {MARK}: {MEANING}." if any(MARK in text for text in texts) else ""
