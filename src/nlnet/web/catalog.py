"""The models a server offers, by name only, so that no request can open a file."""

from __future__ import annotations

from collections.abc import Sequence

from nlnet.errors import ModelError
from nlnet.model import loading
from nlnet.model.family import Family
from nlnet.model.loading import AUTO
from nlnet.model.model import Model


class Catalog:
    """The shipped models, and those the server was started with.

    Parameters
    ----------
    own : sequence of Model or Family
        Models to offer beside the shipped ones; ``auto`` means them where they fit the image.

    Attributes
    ----------
    models : dict
        All of them, by their names.
    """

    def __init__(self, own: Sequence[Model | Family] = ()) -> None:
        self.models = {name: loading.load_model(name) for name in loading.shipped_models()}
        self._families = {name: loading.family_of(name) for name in self.models}
        # Of two that are equally near, the one for less noise.
        self._own = sorted(own, key=lambda model: model.at(25.0).sigma)
        for model in own:
            name = model.name
            if name in self.models:
                raise ModelError(f"Two models are called {name!r}; the names must differ.")
            if not (name.isascii() and name.isprintable()):
                raise ModelError(f"The name {name!r} must be plain ASCII: it is sent in a header.")
            self.models[name] = model

    def family(self, name: str) -> str | None:
        """Return the family of a shipped model for one sigma; None for other models."""
        family = self._families.get(name)
        return None if family == name else family

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that may be asked for: ``auto``, families, models."""
        families = dict.fromkeys(filter(None, map(self.family, self.models)))
        return (AUTO, *families, *self.models)

    def choose(self, name: str, channels: int, sigma: float, quality: str | None = None) -> Model:
        """Return the model that a request means.

        Parameters
        ----------
        name : str
            One of `names`.
        channels : int
            Those of the image: 1 or 3.
        sigma : float
            Standard deviation of its noise on the 0-255 scale.
        quality : str, optional
            Which shipped model ``auto`` is, if none of the server's own fits the image.
        """
        own = [
            model
            for model in self._own
            if name in (model.name, AUTO) and (name != AUTO or model.config.channels == channels)
        ]
        if own:
            return min(own, key=lambda model: loading.distance_from(model, sigma)).at(sigma)
        if name != AUTO:
            return loading.select_model(name, sigma)
        return loading.choose_model(AUTO, channels, sigma, quality)
