"""Optuna's samplers: TPE, Gaussian process, NSGA-II and CMA-ES."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from archgym.agents.common.hyperparameters import BatchSize, Repeats, Threshold
from archgym.agents.common.samplers import SequentialSampler
from archgym.agents.common.scores import costs
from archgym.agents.common.threads import one_quiet_thread, one_seeded_thread
from archgym.errors import AgentUnsuitableError, MissingDependencyError
from archgym.evaluation.outcome import Outcomes
from archgym.problem.status import Status
from archgym.space import Designs, OptunaEncoding

if TYPE_CHECKING:
    import optuna

_EXCESS = "excess"
"""Relative excess over each limit, 0 where it is kept: Optuna's form of constraints."""
_PACKAGES = {"tpe": (), "gp": ("torch", "scipy"), "nsga2": (), "cmaes": ("cmaes",)}


class OptunaSearch(SequentialSampler):
    """Optuna's samplers; needs the extra ``archgym[optuna]``.

    The first designs are random. Then the sampler is asked; it sees a flat space
    (:class:`archgym.space.OptunaEncoding`), so that it proposes known and illegal designs, too.
    Those are not evaluated: it is asked again, and if it proposes such designs again and again, an
    unseen neighbour of its proposal is taken, and the sampler learns its outcome.

    TPE, the Gaussian process and NSGA-II see broken limits as Optuna's constraints, and
    search several goals at once. CMA-ES searches one goal, and sees a broken limit as a cost.
    Failed and illegal designs are failed trials. The same seed gives the same search on the
    same machine and versions.

    References:
        Akiba et al., Optuna: A Next-generation Hyperparameter Optimization Framework,
            KDD 2019.
        Bergstra et al., Algorithms for Hyper-Parameter Optimization, NeurIPS 2011
            (TPE).
        Hansen and Ostermeier, Completely Derandomized Self-Adaptation in Evolution
            Strategies, Evolutionary Computation 9, 2001 (CMA-ES).

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("optuna", env.design_space, seed=1).search(env, budget=20)
    >>> result.simulations, result.duplicates
    (20, 0)

    Raises:
        MissingDependencyError: if Optuna, or what its sampler needs, is not installed.
        AgentUnsuitableError: for CMA-ES with several goals.
    """

    name: ClassVar[str] = "optuna"

    class Hyperparameters(BatchSize):
        """Hyperparameters of the search with Optuna."""

        sampler: Literal["tpe", "gp", "nsga2", "cmaes"] = Field(
            "tpe",
            description="tree-structured Parzen estimator, Gaussian process, NSGA-II or CMA-ES "
            "(which draws categories at random)",
        )
        n_initial: Threshold = Field(10, description="random designs before the sampler is asked")
        population_size: int = Field(
            16, ge=2, le=10_000, description="designs of a generation of NSGA-II"
        )
        retries: Repeats = Field(
            4, description="further attempts after the sampler proposed a known design"
        )

    def setup(self) -> None:
        """Starts with nothing known."""
        sampler = self.hyperparameters.sampler
        self._packages = ("optuna", *_PACKAGES[sampler])
        for package in self._packages:
            if importlib.util.find_spec(package) is None:
                raise MissingDependencyError(
                    f"agent 'optuna' with sampler {sampler!r} needs the package {package}: "
                    "pip install 'archgym[optuna]'"
                )
        if sampler == "cmaes" and len(self.directions) > 1:
            raise AgentUnsuitableError(
                f"agent 'optuna' with sampler 'cmaes' searches one goal, not "
                f"{len(self.directions)}: use sampler tpe, gp or nsga2"
            )
        from threadpoolctl import ThreadpoolController

        for package in self._packages:  # before the controller looks for libraries with threads
            importlib.import_module(package)
        self._libraries = ThreadpoolController()
        super().setup()
        self._encoding = OptunaEncoding(self.space) if self.space.free else None
        self._seed = int(self.rng.integers(1 << 31))
        self._study: optuna.Study | None = None
        self._known: set[int] = set()
        self._pending: dict[int, optuna.Trial | None] = {}

    def tell(self, designs: Designs, outcomes: Outcomes) -> None:
        """Tells Optuna of outcomes that it does not know."""
        self._unseen.learn(designs, outcomes)
        if not len(designs) or self._encoding is None:
            return
        with self._working():
            if self._study is None:
                self._study = self._make_study(outcomes.violations.shape[1] > 0)
            values = outcomes.costs
            if self.hyperparameters.sampler == "cmaes":
                values = costs(outcomes)[:, None]
            for row, key in enumerate(designs.keys()):
                trial = self._pending.pop(key, None)
                if key in self._known:
                    continue
                self._known.add(key)
                trial = trial or self._trial_of(self._study, designs[row : row + 1])
                if outcomes.status[row] != Status.OK:
                    self._give_up(self._study, trial)
                    continue
                trial.set_user_attr(_EXCESS, outcomes.violations[row].tolist())
                self._study.tell(trial, values[row].tolist())

    def _next(self) -> Designs:
        """A random design at first, then the sampler's."""
        trial: optuna.Trial | None = None
        known = len(self._known) + len(self._pending)
        if known < self.hyperparameters.n_initial or self._study is None:
            design = self._unseen.take(1)
        else:
            design, trial = self._propose(self._study)
        self._pending.update(dict.fromkeys(design.keys(), trial))
        return design

    def _propose(self, study: optuna.Study) -> tuple[Designs, optuna.Trial | None]:
        """An unseen design, and its trial if the sampler proposed it."""
        assert self._encoding is not None
        proposed = self.space.designs(())
        if self._unseen.exhausted:
            return proposed, None
        for _ in range(1 + self.hyperparameters.retries):
            trial = study.ask(self._encoding.distributions)
            proposed = self._encoding.from_params([trial.params])
            new = len(self._unseen.sift(proposed)) > 0
            if new and not self._unseen.likely_equivalent(proposed)[0]:
                self._unseen.add(proposed)
                return proposed, trial
            self._give_up(study, trial)

        last = proposed.codes
        design = self._unseen.take(
            1, lambda _, failures: self._moves.kick(last, 8, 1 + failures // 2)
        )
        return design, self._trial_of(study, design) if len(design) else None

    def _trial_of(self, study: optuna.Study, design: Designs) -> optuna.Trial:
        """A trial of a design that the sampler did not propose."""
        assert self._encoding is not None
        study.enqueue_trial(self._encoding.to_params(design)[0])
        return study.ask(self._encoding.distributions)

    def _give_up(self, study: optuna.Study, trial: optuna.Trial) -> None:
        import optuna

        study.tell(trial, state=optuna.trial.TrialState.FAIL)

    def _make_study(self, limits: bool) -> optuna.Study:
        import optuna

        settings, samplers = self.hyperparameters, optuna.samplers
        constrained: dict[str, Any] = {"seed": self._seed}
        if limits:
            constrained["constraints_func"] = lambda trial: trial.user_attrs[_EXCESS]
        sampler: optuna.samplers.BaseSampler
        if settings.sampler == "tpe":
            sampler = samplers.TPESampler(
                n_startup_trials=1, multivariate=True, constant_liar=True, **constrained
            )
        elif settings.sampler == "gp":
            sampler = samplers.GPSampler(
                n_startup_trials=1, deterministic_objective=True, **constrained
            )
        elif settings.sampler == "nsga2":
            sampler = samplers.NSGAIISampler(
                population_size=settings.population_size, **constrained
            )
        else:
            sampler = samplers.CmaEsSampler(seed=self._seed, warn_independent_sampling=False)
        return optuna.create_study(directions=["minimize"] * len(self.directions), sampler=sampler)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """One numeric thread, no messages, no warnings of experimental features."""
        import optuna

        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            with ExitStack() as stack:
                stack.enter_context(one_quiet_thread(self._libraries))
                if "torch" in self._packages:
                    stack.enter_context(one_seeded_thread(int(self.rng.integers(1 << 31))))
                yield
        finally:
            optuna.logging.set_verbosity(verbosity)
