"""What makes the committed results: evaluations, tables, model cards, shipped weights."""
