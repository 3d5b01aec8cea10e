"""Tables, figures and pages that show how well a search works."""

__all__: list[str] = []
