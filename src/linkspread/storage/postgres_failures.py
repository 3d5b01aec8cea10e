"""What is said of a failed connection to PostgreSQL, without a word of its URL."""

# What drivers say, and what is said here. Their own words may quote the URL, and with
# it a password, so they are never passed on.
REASONS = {
    "authentication failed": "the server refuses the user or the password",
    "no password supplied": "the server asks for a password",
    "does not exist": "the server has no such database or user",
    "refused": "no server answers there",
    "No such file": "no server answers there",
    "timeout": "the server does not answer in time",
    "resolve": "the name of the host is not known",
    "translate host": "the name of the host is not known",
}


def failure_reason(error: Exception, *, otherwise: str) -> str:
    """Return why a connection failed, in words that quote nothing."""
    said = str(error)
    return next((REASONS[words] for words in REASONS if words in said), otherwise)
