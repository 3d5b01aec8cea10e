"""The hot loops: `cpu`, `simplex`, those of a `gpu`; `backends` chooses."""

__all__: list[str] = []
