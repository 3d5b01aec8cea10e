"""What every room stands on: errors, checks of parameters, progress, cores."""

__all__: list[str] = []
