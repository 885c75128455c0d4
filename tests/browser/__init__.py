"""The page in a real browser; ``make test-browser`` runs it."""
