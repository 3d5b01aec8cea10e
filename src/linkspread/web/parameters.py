"""What addresses and forms may hold, and how much of it."""

from typing import Annotated

from fastapi import Form, Query

View = Annotated[str, Query(max_length=200)]
Id = Annotated[str, Query(max_length=1000)]
Words = Annotated[str, Query(max_length=2000)]
Field = Annotated[str, Form(max_length=1000)]
