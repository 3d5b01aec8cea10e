"""Errors, parameter checks, progress and core counts for all rooms."""

__all__: list[str] = []
