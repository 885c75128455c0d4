"""Training: the paper's recipe, greedy stage by stage, then all stages jointly (extra ``train``).

:mod:`~nlnet.training.settings` reads the recipe, :mod:`~nlnet.training.data` draws noisy crops,
:mod:`~nlnet.training.trainer` runs the phases, :mod:`~nlnet.training.checkpoints` keeps them, and
:mod:`~nlnet.training.run` is a run from beginning to end.
"""
