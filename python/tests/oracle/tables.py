"""All tables, by section of the API."""

from oracle import elementwise, movement, products, reductions  # noqa: F401
