"""Texts of others (reasons, names, what a client says) on a terminal and in files that do not allow every character."""


def shown(text: str) -> str:
    """Return a text without control characters, which would move a terminal's cursor and are not allowed in XML 1.0.

    Each of them becomes U+FFFD; line breaks and tabs stay.
    """
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)
