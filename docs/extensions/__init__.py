"""What the documentation needs beyond Sphinx's own extensions."""
