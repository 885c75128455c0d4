"""The web page and its HTTP API: ``nlnet serve``. It needs the extra ``web``."""
