"""The models a server offers, by name only, so that no request can open a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from nlnet.errors import ModelError
from nlnet.model.family import Family
from nlnet.model.loading import (
    AUTO,
    choose_model,
    distance_from,
    family_of,
    load_model,
    select_model,
    shipped_models,
)
from nlnet.model.model import Model


@dataclasses.dataclass(frozen=True)
class Offer:
    """A model, its name, and the family of which it is the one for its sigma."""

    model: Model | Family
    name: str
    family: str | None


class Catalog:
    """The shipped models, and those the server was started with.

    Parameters
    ----------
    own : sequence of Model or Family
        Models to offer beside the shipped ones; ``auto`` means them where they fit the image.
    """

    def __init__(self, own: Sequence[Model | Family] = ()) -> None:
        shipped = (Offer(load_model(name), name, _family(name)) for name in shipped_models())
        self.offers = (*shipped, *(Offer(model, model.name, None) for model in own))
        # Of two that are equally near, the one for less noise.
        self._own = sorted(own, key=lambda model: model.at(25.0).sigma)
        names = [offer.name for offer in self.offers]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(f"Two models are called {name!r}; the names must differ.")
            if not (name.isascii() and name.isprintable()):
                raise ModelError(f"The name {name!r} must be plain ASCII: it is sent in a header.")

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that may be asked for: ``auto``, families, models."""
        families = dict.fromkeys(offer.family for offer in self.offers if offer.family)
        return (AUTO, *families, *(offer.name for offer in self.offers))

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
        for model in self._own:
            if model.name == name:
                return model.at(sigma)
        if name != AUTO:
            return select_model(name, sigma)
        return self._default(channels, sigma, quality)

    def defaults(self) -> tuple[Model, ...]:
        """Return what ``auto`` means for gray and color images, if there is a model for them."""
        offered = {offer.model.config.channels for offer in self.offers}
        return tuple(self._default(channels, sigma=25.0) for channels in sorted(offered))

    def _default(self, channels: int, sigma: float, quality: str | None = None) -> Model:
        for model in self._nearest(channels, sigma):
            return model.at(sigma)
        return choose_model(AUTO, channels, sigma, quality)

    def _nearest(self, channels: int, sigma: float) -> list[Model | Family]:
        """Return the models of the server's own for such images, those for that noise first."""
        fitting = [model for model in self._own if model.config.channels == channels]
        return sorted(fitting, key=lambda model: distance_from(model, sigma))


def _family(name: str) -> str | None:
    """Return what a shipped model is one of; None for a model for every sigma."""
    family = family_of(name)
    return None if family == name else family
