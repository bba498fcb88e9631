"""The one exception for mistakes a user can mend."""


class UserError(Exception):
    """A mistake the user can mend: its text is one sentence that says what to do."""
