"""The training run: its phases, validation, checkpoints and log.

A run is a sequence of phases: one for each stage, in which only that stage moves and its inputs are
computed once, one in which all stages move, and one for the refinement, if there is one.
All that is drawn at random follows from the seed and the place in the run, so a checkpoint taken
after any step continues to the same bits.
"""

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch

from nlnet.evaluation.datasets import checkout_commit
from nlnet.model.family import Family
from nlnet.model.model import Model
from nlnet.torch import NLNet
from nlnet.training.checkpoints import Checkpoint, RunProgress, earlier, summarize
from nlnet.training.data import CropSource
from nlnet.training.phase import GreedyPhase, JointPhase, Phase, Setup
from nlnet.training.pictures import Pictures
from nlnet.training.progress import RunLog, Screen
from nlnet.training.refinement import RefinementPhase
from nlnet.training.settings import TrainingSettings
from nlnet.training.start import blank_parameters, starting_parameters, starting_refinement
from nlnet.training.team import Team

BEST_MODEL = "best.safetensors"


class Trainer:
    """Trains one model by its recipe.

    Parameters
    ----------
    settings : TrainingSettings
        The recipe.
    pictures : Pictures
        Clean images to train on and to validate with.
    run : Path
        Folder for checkpoint, log and the best model so far.
    team : Team
        The processes that train together.
    checkpoint : Checkpoint, optional
        Where to continue; by default the run starts from the beginning.
    stop : callable
        Asked after every step whether to save and leave.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        pictures: Pictures,
        run: Path,
        *,
        team: Team,
        checkpoint: Checkpoint | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._settings = settings
        self._pictures = pictures
        self._run, self._best_path = run, run / BEST_MODEL
        self._stop = stop
        self._team = team
        self._screen = Screen(quiet=not team.is_rank_0)
        # Now, because the checkout may move on to other commits during the training.
        self._commit = checkout_commit()
        if checkpoint is None:
            first = 0 if settings.start is None else settings.network.stages
            parameters, refinement, told = team.broadcast(
                lambda: (
                    starting_parameters(settings),
                    starting_refinement(settings),
                    earlier(settings),
                )
            )
            self._progress = RunProgress(phase=first, earlier=told)
        else:
            # Only their shapes and precision matter.
            parameters, refinement = blank_parameters(settings), None
            self._progress = checkpoint.progress
        self._network = NLNet(
            settings.network,
            *parameters,
            sigmas=settings.sigmas,
            refinement=refinement,
            backend=settings.backend,
            threads=team.threads,
        ).to(team.device)
        self._phase_state = None
        if checkpoint is not None:
            self._network.load_state_dict(checkpoint.network)
            self._phase_state = checkpoint.phase
        self._log = RunLog(run, self._progress.log_lines) if team.is_rank_0 else None
        crops = CropSource(pictures, settings, team.threads)
        self._setup = Setup(settings, self._network, crops, team)
        self._validation = [
            batch
            for number in team.shard(range(len(pictures.validation)))
            for batch in crops.validation(number)
        ]
        self._saved_at = time.monotonic()
        self._began_at = self._saved_at - self._progress.seconds

    def train(self) -> bool:
        """Run the phases that are left; return False if asked to stop before the end."""
        progress = self._progress
        if not progress.log_lines and not progress.step:
            self._save(None)  # to find out now, not minutes later, whether it can be saved
        try:
            while progress.phase <= self._settings.last_phase:
                if not self._train_phase():
                    return False
                progress.phase += 1
                progress.epoch = 0
                self._save(None)
        finally:
            self._screen.end()
        best = progress.best_psnr
        self._screen.say(f"Finished: {best:.3f} dB on the validation images, {self._best_path}.")
        return True

    def _train_phase(self) -> bool:
        progress = self._progress
        with contextlib.closing(make_phase(progress.phase, self._setup)) as phase:
            if self._phase_state is not None:
                phase.load_state(self._phase_state)
            epochs, done = phase.settings.epochs, progress.epoch * phase.steps + progress.step
            self._screen.begin(phase.title, epochs, epochs * phase.steps, done)
            while progress.epoch < epochs:
                if not self._train_epoch(phase):
                    return False
                self._finish_epoch(phase)
            phase.keep_average()
        return True

    def _train_epoch(self, phase: Phase) -> bool:
        progress = self._progress
        for loss in phase.epoch(progress.epoch, progress.step):
            progress.step += 1
            progress.loss_sum += loss
            progress.pixels += phase.crops_per_step * phase.side**2
            self._screen.step(progress.epoch, -loss, phase.optimizer.rate)
            late = time.monotonic() - self._saved_at > 60 * self._settings.checkpoint_minutes
            stop, due = self._team.sum(self._stop(), late)
            if stop or due:
                self._save(phase)
            if stop:
                return False
        return True

    def _finish_epoch(self, phase: Phase) -> None:
        progress = self._progress
        progress.epoch += 1
        last = progress.epoch == phase.settings.epochs
        due = last or progress.epoch % self._settings.validate_every == 0
        entry = {
            "phase": phase.title,
            "epoch": progress.epoch,
            "epochs": phase.settings.epochs,
            "train_psnr": -progress.loss_sum / phase.steps,
            "val_psnr": self._validate(phase) if due else None,
            "rate": phase.optimizer.rate,
            "seconds": round(self._elapsed(), 1),
        }
        if self._log is not None:
            self._log.write(entry)
        self._screen.epoch(entry)
        progress.log_lines += 1
        progress.step, progress.loss_sum = 0, 0.0

    def _validate(self, phase: Phase) -> float:
        """Mean PSNR on the validation images, through all stages trained so far.

        Where that is the whole network, and it is better than ever, it is kept.
        """
        with phase.averaged():
            with torch.no_grad():
                scores = [-float(phase.score(batch)) for batch in self._validation]
            count = len(self._pictures.validation) * len(self._settings.validation_sigmas)
            score = self._team.sum(sum(scores))[0] / count
            if phase.ends_network and score > (self._progress.best_psnr or -math.inf):
                self._progress.best_psnr = score
                if self._team.is_rank_0:
                    self._export(phase, score).save(self._best_path)
        return score

    def _export(self, phase: Phase, score: float) -> Model | Family:
        """Make a model of the present parameters."""
        settings, progress, sets = self._settings, self._progress, self._network.export()
        pictures, source = self._pictures, settings.data.source or "images of the user"
        best = f"epoch {progress.epoch} of phase {phase.title!r}"
        provenance = {
            "recipe": summarize(settings),
            "settings": settings.to_mapping(),
            "data": f"{source}, {len(pictures.training)} images",
            "data_terms": settings.data.terms or "not stated",
            "selection": f"the best on {len(pictures.validation)} validation images, after {best}",
            "seed": settings.seed,
            "seconds": round(self._elapsed()),
            "megapixels": round(progress.pixels / 1e6, 3),
            "earlier": progress.earlier,
            "commit": self._commit,
            "licence": settings.licence or "not stated",
        }
        facts = (settings.name, provenance, {"validation_psnr": round(score, 4)})
        if settings.sigma is None:
            net = self._network.refinement
            refinement = None if net is None else net.export()
            return Family(settings.network, settings.sigmas, sets, *facts, refinement)
        return Model(settings.network, sets[0], settings.sigma, *facts)

    def _save(self, phase: Phase | None) -> None:
        self._saved_at = time.monotonic()
        self._progress.seconds = self._elapsed()
        self._phase_state = None if phase is None else phase.state()
        if self._team.is_rank_0:
            Checkpoint(
                self._settings, self._progress, self._network.state_dict(), self._phase_state
            ).save(self._run)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began_at


def make_phase(number: int, setup: Setup) -> Phase:
    """Return a phase by its number: stages are counted first, then joint training, refinement."""
    stages = setup.recipe.network.stages
    if number < stages:
        return GreedyPhase(number, setup)
    return JointPhase(setup) if number == stages else RefinementPhase(setup)
