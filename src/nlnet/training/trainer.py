"""The training run: its phases, validation, checkpoints and log.

A run is a sequence of phases: one for each stage, in which only that stage moves and its inputs are
computed once, and a last one, in which all stages move. All that is drawn at random follows from
the seed and the place in the run, so a checkpoint taken after any step continues to the same bits.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from nlnet.arrays import Array
from nlnet.checkout import checkout_commit
from nlnet.errors import ModelError
from nlnet.model import Model
from nlnet.parallel import Workers
from nlnet.torch import NLNet
from nlnet.training.checkpoints import Checkpoint, Progress
from nlnet.training.data import CropSource, validation_batches
from nlnet.training.log import RunLog
from nlnet.training.phase import Phase
from nlnet.training.settings import TrainingSettings
from nlnet.training.start import starting_parameters
from nlnet.training.team import Team

BEST_MODEL = "best.safetensors"


class Trainer:
    """Trains one model by its recipe.

    Parameters
    ----------
    settings : TrainingSettings
        The recipe.
    training, validation : sequence of (C, H, W) uint8 arrays
        Clean images.
    run : Path
        Folder for checkpoint, log and the best model so far.
    team : Team
        The processes that train together.
    checkpoint : Checkpoint, optional
        Where to go on; by default the run begins anew.
    threads : int, optional
        Threads of this process.
    stop : callable
        Asked after every step whether to save and leave.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        training: Sequence[Array],
        validation: Sequence[Array],
        run: Path,
        *,
        team: Team,
        checkpoint: Checkpoint | None = None,
        threads: int | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings = settings
        self._run = run
        self._stop = stop
        self._team = team
        self._crops = CropSource(training, settings)
        network = NLNet(settings.network, starting_parameters(settings), threads=threads)
        self._network = network.to(team.device)
        first = settings.network.stages if settings.start else 0
        self._progress = Progress(phase=first) if checkpoint is None else checkpoint.progress
        if checkpoint is not None:
            self._network.load_state_dict(checkpoint.network)
        self._phase_state = None if checkpoint is None else checkpoint.phase
        self._log = RunLog(run, self._progress.log_lines, quiet=not team.leads)
        with Workers(threads) as workers:
            self._validation = validation_batches(validation, settings, workers)
        self._saved_at = time.monotonic()
        self._began_at = self._saved_at - self._progress.seconds

    def train(self) -> bool:
        """Run the phases that are left; return False if asked to stop before the end."""
        while self._progress.phase <= self._settings.network.stages:
            phase = Phase(
                self._progress.phase, self._settings, self._network, self._crops, self._team
            )
            if self._phase_state is not None:
                phase.load_state(self._phase_state)
            done = self._progress.epoch * phase.steps + self._progress.step
            self._log.begin(phase.title, phase.settings.epochs * phase.steps, done)
            while self._progress.epoch < phase.settings.epochs:
                if not self._train_epoch(phase):
                    return False
                self._finish_epoch(phase)
            if phase.average is not None:
                self._network.load_state_dict(phase.average)
            self._progress.phase += 1
            self._progress.epoch = 0
            self._save(None)
        self._log.end()
        return True

    def _train_epoch(self, phase: Phase) -> bool:
        progress = self._progress
        for loss in phase.epoch(progress.epoch, progress.step):
            if not math.isfinite(loss):
                raise ModelError(
                    f"The loss became {loss} in phase {phase.title!r}, epoch {progress.epoch + 1}; "
                    "the last good checkpoint is kept, a lower rate may help."
                )
            progress.step += 1
            progress.loss_sum += loss
            self._log.advance(-loss, phase.optimizer.rate)
            stop = self._team.any(self._stop())
            due = time.monotonic() - self._saved_at > 60 * self._settings.checkpoint_minutes
            if stop or self._team.any(due):
                self._save(phase)
            if stop:
                return False
        return True

    def _finish_epoch(self, phase: Phase) -> None:
        progress = self._progress
        progress.epoch += 1
        last = progress.epoch == phase.settings.epochs
        due = last or progress.epoch % self._settings.validate_every == 0
        score = self._validate(phase) if due else None
        self._log.write(
            phase=phase.title,
            epoch=progress.epoch,
            epochs=phase.settings.epochs,
            train_psnr=-progress.loss_sum / phase.steps,
            val_psnr=score,
            rate=phase.optimizer.rate,
            seconds=round(self._elapsed(), 1),
        )
        progress.log_lines += 1
        progress.step, progress.loss_sum = 0, 0.0
        if phase.joint and score is not None and score > (progress.best_psnr or -math.inf):
            progress.best_psnr = score
            if self._team.leads:
                self._export(phase, score).save(self._run / BEST_MODEL)

    def _validate(self, phase: Phase) -> float:
        """Mean PSNR on the validation images, through all stages trained so far."""
        present = copy.deepcopy(self._network.state_dict())
        if phase.average is not None:
            self._network.load_state_dict(phase.average)
        with torch.no_grad():
            scores = [
                -float(phase.negative_psnr(self._validation[i], whole=True))
                for i in self._team.share(range(len(self._validation)))
            ]
        self._network.load_state_dict(present)
        return self._team.mean(scores, len(self._validation))

    def _export(self, phase: Phase, score: float) -> Model:
        """Make a model of the present parameters, or of their average where there is one."""
        network = copy.deepcopy(self._network)
        if phase.average is not None:
            network.load_state_dict(phase.average)
        return Model(
            config=self._settings.network,
            stages=network.export(),
            sigma=self._settings.sigma,
            name=self._settings.name,
            provenance={
                "recipe": self._settings.to_mapping(),
                "seconds": round(self._elapsed()),
                "joint_epochs": self._progress.epoch,
                "commit": checkout_commit(),
            },
            figures={"validation_psnr": round(score, 4)},
        )

    def _save(self, phase: Phase | None) -> None:
        self._saved_at = time.monotonic()
        self._progress.seconds = self._elapsed()
        self._phase_state = None if phase is None else phase.state()
        if self._team.leads:
            Checkpoint(
                self._settings, self._progress, self._network.state_dict(), self._phase_state
            ).save(self._run)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began_at
