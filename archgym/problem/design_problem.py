"""The base class of a problem: the spaces, metrics, workloads and simulation of an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from archgym.errors import InvalidValueError, UnknownNameError
from archgym.problem.fidelity import FULL, Fidelity
from archgym.problem.metrics import Metric
from archgym.problem.simulator import SimulationResult, Simulator, simulate_each
from archgym.space import Designs, DesignSpace
from archgym.space.expression import Expression

if TYPE_CHECKING:
    from archgym.problem.reference import Reference  # reads files, which only validation does


class DesignProblem:
    """Design spaces, metrics, workloads and a simulation: all of an environment but the search.

    :class:`archgym.Environment` lists which of these a subclass has to write.

    Attributes:
        workload: what the hardware runs.
        workload_sha256: hash of the workload's content; equal hashes mean equal workloads.
    """

    design_space: DesignSpace
    design_spaces: ClassVar[Mapping[str, DesignSpace]] = {}
    metrics: ClassVar[tuple[Metric, ...]] = ()
    """The metrics. Where they depend on the workload, this holds the metrics of the default
    one, and a constructor sets those of an instance before it calls this class's."""
    default_objective: ClassVar[str | Mapping[str, Any]] = ""
    baseline: ClassVar[Mapping[str, Any]] = {}
    default_workload: ClassVar[Any] = None
    simulators: ClassVar[Mapping[str, Callable[[Any], Simulator]]] = {}
    """Other simulators by name: each is called with the environment, whose
    :attr:`~archgym.Environment.simulator_options` it reads."""
    incidental_options: ClassVar[tuple[str, ...]] = ("program", "threads")
    """Options of :attr:`simulators` on which no metric depends, such as where the program is: they
    are not recorded."""
    incidental_arguments: ClassVar[tuple[str, ...]] = ()
    """Own constructor arguments on which no metric depends: they need not be in
    :attr:`settings`."""
    compiles: ClassVar[bool] = False
    """Whether the first :meth:`simulate` in a process compiles, so that a limit on the time of a
    simulation must not hold for it."""
    fidelities: tuple[Fidelity, ...] = (FULL,)
    version: ClassVar[str] = "1"
    """Version of :meth:`simulate`: raise it whenever a design may give other metrics."""
    simulates_alone: ClassVar[bool] = False
    """Whether an overridden :meth:`simulate_batch_at` simulates each design alone, so that a
    batch may be given to it in parts."""
    spaces_of_workload: ClassVar[tuple[str, ...]] = ()
    """Names of the spaces whose parameters depend on the workload (``default`` is the one that is
    searched where none is named): trials on different workloads cannot share a dataset."""
    not_modelled: ClassVar[tuple[str, ...]] = ()
    """Effects that the simulator leaves out, a sentence each; shown by ``archgym show``."""
    caveats: ClassVar[Mapping[str, Expression]] = {}
    """Sentences about what metrics do not show, each with the designs that it concerns; printed
    wherever such a design is shown, and on the pages of the environment."""
    repeats: int = 1
    """Runs of a design of which its metrics are the medians; a metric ``NAME_spread_share`` is then
    the standard deviation of metric ``NAME`` between them over the median."""
    modelled: ClassVar[tuple[str, ...]] = ()
    """Effects that the simulator models, a sentence each; on the page of ``archgym docs``."""

    workload: Any
    workload_sha256: str

    def simulate(self, design: dict[str, Any]) -> Mapping[str, float]:
        """Metrics of one legal, canonical design.

        Raises:
            SimulationError: if this design fails; it becomes an outcome with status ``failed``.
            NotCoveredError: if the simulator does not model this design (status ``illegal``).
            TimeoutError: if it took too long (status ``timeout``).
        """
        raise NotImplementedError(
            f"{type(self).__name__} must override simulate, simulate_batch or simulate_batch_at"
        )

    def simulate_batch(self, designs: Designs) -> list[tuple[SimulationResult, float]]:
        """Metrics, or the error, of each of many designs, with the seconds that each took.

        Override it where many designs at once are faster than one by one.
        """
        return simulate_each(self, designs)

    def simulate_batch_at(
        self, designs: Designs, fidelity: float
    ) -> list[tuple[SimulationResult, float]]:
        """As :meth:`simulate_batch`, at one of :attr:`fidelities`: all simulations begin here.

        An environment that declares several overrides it. Below 1 it gives estimates of what
        the full simulation gives: every metric, in the same unit (a total over a tenth of a
        trace is scaled up tenfold).

        Args:
            designs: legal, canonical ones.
            fidelity: value of one of :attr:`fidelities`.
        """
        return self.simulate_batch(designs)

    def load_workload(self, spec: Any) -> None:
        """Makes ready what the hardware runs; called once, at construction.

        Raises:
            UnknownNameError, InvalidValueError: if there is no such workload.
        """
        if spec is not None:
            owner = next(one for one in type(self).__mro__ if "workloads" in vars(one))
            how = "; it lists some, but does not override load_workload, which makes one ready: "
            how += "see the guide 'Connect a simulator'"
            raise InvalidValueError(
                f"{type(self).__name__} has no workloads, got workload={spec!r}"
                f"{'' if owner is DesignProblem else how}"
            )

    @classmethod
    def workloads(cls) -> dict[str, str]:
        """Names of the workloads that come with it, and a line on each."""
        return {}

    @property
    def workload_features(self) -> dict[str, float]:
        """Numbers that describe the workload, by name: what it has in common with others.

        From them a proxy of many workloads predicts one that it has not seen
        (``archgym proxy train --per workload-features``). Override it together with
        :meth:`workload_feature_docs`; by default there are none.
        """
        return {}

    @classmethod
    def workload_feature_docs(cls) -> dict[str, str]:
        """Meaning of each of :attr:`workload_features`; the unit is the end of its name."""
        return {}

    @classmethod
    def varied_workloads(cls) -> tuple[Any, ...]:
        """Workloads that differ as much as those may that a proxy is to know without seeing them.

        ``archgym proxy collect-workloads`` simulates them where none are named; by default there
        are none.
        """
        return ()

    def held_out_workload(self) -> Any:
        """The workload on which what searches find is evaluated at their end, if there is one."""
        return None

    @classmethod
    def argument_docs(cls) -> dict[str, str]:
        """The values that its own constructor arguments can have, a line each."""
        return {}

    @classmethod
    def sources(cls) -> dict[str, str]:
        """Sources of its constants: the paper, standard, data sheet or tool of each kind."""
        return {}

    @classmethod
    def references(
        cls,
        table: Path | None = None,
        *,
        workloads: Path | None = None,
        hardware: str | None = None,
    ) -> list[Reference]:
        """Figures of other simulators that :meth:`simulate` should agree with.

        ``archgym validate`` evaluates the designs in them and compares. Override it where there
        are such figures.

        Args:
            table: a table in a form that the environment documents; ``None`` for those that
                ship with it.
            workloads: folder of the workloads that the rows name, where they do not ship.
            hardware: name or file of what the rows ran on (a memory, a cell library), where
                the rows alone leave it open.

        Raises:
            InvalidValueError: if there are none, or the table cannot be read.
        """
        raise InvalidValueError(f"{cls.__name__} has no reference figures")

    @classmethod
    def named_designs(cls) -> dict[str, dict[str, Any]]:
        """Designs that have a name, such as published ones."""
        return {}

    @classmethod
    def draw(cls, design: Mapping[str, Any], path: Path) -> None:
        """Draws a design into a file; ``archgym show --picture`` does. Override it to.

        Raises:
            InvalidValueError: if it draws none, or not in this format.
        """
        raise InvalidValueError(f"{cls.__name__} draws no pictures, so there is none for {path}")

    @property
    def settings(self) -> dict[str, Any]:
        """Values by name of those own constructor arguments that metrics depend on.

        Environments with equal settings share what was simulated: the constructor refuses a value
        of an argument that is neither here nor among :attr:`incidental_arguments`.
        :attr:`archgym.Environment.trial_settings` is what is recorded.
        """
        return {}

    @classmethod
    def caveats_of(cls, design: Mapping[str, Any]) -> list[str]:
        """The :attr:`caveats` that concern a design, its active parameters."""
        return [
            sentence
            for sentence, concerns in cls.caveats.items()
            if set(concerns.names) <= set(design) and concerns.evaluate(design)
        ]

    def assumptions(self, design: Mapping[str, Any]) -> list[str]:
        """Assumptions behind the metrics of a design that are no parameters, such as a clock."""
        return []

    @property
    def warnings(self) -> list[str]:
        """Sentences on why results may not mean what a user expects, such as an overloaded memory.

        ``archgym run`` and ``archgym evaluate`` print them; by default there are none.
        """
        return []

    @property
    def metrics_given(self) -> tuple[str, ...]:
        """Names of the metrics that :meth:`simulate` gives; by default all."""
        return tuple(metric.name for metric in self.metrics)

    @property
    def metrics_so_far(self) -> tuple[str, ...]:
        """Names of metrics that are known while a design is simulated, by default none.

        From them a search may stop it early: :mod:`archgym.simulators.early_stopping`.
        """
        return ()

    @property
    def workload_name(self) -> str:
        """Label of the workload in tables and datasets."""
        return "" if self.workload is None else str(self.workload)

    @property
    def workload_doc(self) -> str:
        """One line on what was read of the workload, for ``archgym show``; empty unless given."""
        return ""

    def hash_workload(self) -> str:
        """Hash of the workload's content; equal hashes mean equal workloads.

        Called once, after :meth:`load_workload`.
        """
        return ""

    @classmethod
    def spaces(cls) -> dict[str, DesignSpace]:
        """Every design space that it offers, by name."""
        if cls.design_spaces:
            return dict(cls.design_spaces)
        if not isinstance(getattr(cls, "design_space", None), DesignSpace):
            raise InvalidValueError(f"{cls.__name__} must set design_space to a DesignSpace")
        return {"default": cls.design_space}

    def _choose_space(self, space: str | DesignSpace) -> DesignSpace:
        if isinstance(space, DesignSpace):
            return space
        if not isinstance(space, str):
            raise InvalidValueError(
                f"space={space!r:.80} must be the name of a design space or a DesignSpace"
            )
        offered = self.spaces()
        if space not in offered:
            raise UnknownNameError("space", space, offered)
        return offered[space]
