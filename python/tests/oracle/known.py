"""What is known to be wrong, by pattern of a check's name: it must fail, so that a repair shows."""

from fnmatch import fnmatchcase

FAILING: list[tuple[str, str]] = []


def reason(check: str) -> str | None:
  return next((text for pattern, text in FAILING if fnmatchcase(check, pattern)), None)
