"""The paper's experiments and fair rivals; nothing of the product needs this room."""

__all__: list[str] = []
