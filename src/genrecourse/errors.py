"""The one exception for a user's mistake: what is wrong, the value seen, what to do."""


class UserError(ValueError):
    """The input, not the library, is at fault. Apps show the sentence, never a traceback."""
