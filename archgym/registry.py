"""Environments and agents by name, loaded when first used.

Third-party packages join through the entry-point groups ``archgym.environments`` and
``archgym.agents``: ``"Name-v0" = "module:Class"``.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import gymnasium

from archgym.environment.arguments import constructor_arguments
from archgym.environment.environment import Environment
from archgym.environment.recorded import PROBLEM_ARGUMENTS, recorded_settings, refuse_paths
from archgym.errors import ArchgymError, InvalidValueError, UnknownNameError, place_of
from archgym.reading.import_path import search_working_folder
from archgym.simulators.resolve import SimulatorFile, simulator_file

if TYPE_CHECKING:
    from archgym.agent import Agent
    from archgym.views.batch_view import BatchView

_ENVIRONMENTS: Final = {
    "Accelerator-v0": "archgym.envs.accelerator.environment:AcceleratorEnvironment",
    "CPU-v0": "archgym.envs.cpu.environment:CPUEnvironment",
    "Conformance-v0": "archgym.envs.conformance:ConformanceEnvironment",
    "DRAM-v0": "archgym.envs.dram.environment:DramEnvironment",
    "FPGA-v0": "archgym.envs.fpga.environment:FPGA",
    "GPUKernel-v0": "archgym.envs.gpu.environment:GPUKernel",
    "LLMDevice-v0": "archgym.envs.llm.device.environment:LLMDevice",
    "LLMServing-v0": "archgym.envs.llm.deployment.environment:LLMServing",
    "LLMTraining-v0": "archgym.envs.llm.environment:LLMTraining",
    "NAS-v0": "archgym.envs.nas.environment:NASEnvironment",
    "SoC-v0": "archgym.envs.soc.environment:SoCEnvironment",
    "TPE-v0": "archgym.envs.tpe.environment:TensorEngine",
}
_AGENTS: Final = {
    "a2c": "archgym.agents.rl.a2c:A2C",
    "aco": "archgym.agents.aco:AntColony",
    "active": "archgym.agents.active:ActiveLearning",
    "auto": "archgym.agents.auto:Auto",
    "bayesian": "archgym.agents.bayesian:Bayesian",
    "botorch": "archgym.agents.botorch:BoTorchSearch",
    "dqn": "archgym.agents.rl.dqn:DQN",
    "ga": "archgym.agents.ga:Genetic",
    "gp": "archgym.agents.gp.search:GaussianProcessSearch",
    "hyperband": "archgym.agents.hyperband:Hyperband",
    "ippo": "archgym.agents.rl.ippo:IndependentLearners",
    "ippo_shared": "archgym.agents.rl.ippo_shared:SharedPolicy",
    "local": "archgym.agents.local:LocalSearch",
    "mappo": "archgym.agents.rl.mappo:CentralisedCritic",
    "maskable_ppo": "archgym.agents.rl.maskable_ppo:MaskablePPO",
    "nsga2": "archgym.agents.nsga2:Nsga2",
    "optuna": "archgym.agents.optuna:OptunaSearch",
    "ppo": "archgym.agents.rl.ppo:PPO",
    "random": "archgym.agents.random:RandomSearch",
    "sa": "archgym.agents.sa:SimulatedAnnealing",
    "sac": "archgym.agents.rl.sac:SAC",
    "sobol": "archgym.agents.sobol:SobolSearch",
    "staged": "archgym.agents.staged:Staged",
}
_GYMNASIUM_NAMESPACE = "archgym"
_ENVIRONMENT_NAME = re.compile(r"[\w.-]+-v\d+")
_RESETS_IN_SAME_STEP = hasattr(gymnasium.vector, "AutoresetMode")
"""Whether Gymnasium's vector environments may reset without a step; it knows that from 1.1 on."""


def make(name: str, **kwargs: Any) -> Environment:
    """An environment by name, bare (without Gymnasium's wrappers).

    Args:
        name: a registered name, such as ``DRAM-v0``; ``module:Class``, where a module is looked
            for in the working folder too, after all other places; the path of a YAML file that
            declares an environment around a program; or that of a JSON file in which Kernel Tuner
            or another autotuner left its results (:mod:`archgym.tuning`).
        **kwargs: arguments of the environment, see :class:`archgym.Environment`. With
            ``simulator="tabular:PATH"`` or ``"proxy:PATH"`` those that are not given are the
            table's or the proxy's (of several workloads a proxy chooses none).

    Raises:
        UnknownNameError: if there is no such environment, or it has no such argument.
    """
    cls = environment_class(name)
    allowed = constructor_arguments(cls)
    for argument in kwargs:
        if argument not in allowed:
            raise UnknownNameError(f"argument of {name}", argument, allowed)
    file = simulator_file(kwargs.get("simulator"))
    if file is not None:
        _check_environment(kwargs["simulator"], file, cls)
        recorded = recorded_settings(cls, file.arguments, PROBLEM_ARGUMENTS)
        if isinstance(workload := kwargs.get("workload"), str) and workload in file.workload_names:
            kwargs = {**kwargs, "workload": None}  # the file's own
        left = {name: value for name, value in recorded.items() if name not in kwargs}
        refuse_paths(left, "give it yourself")
        kwargs = {**left, **kwargs}
    environment = cls(**kwargs)
    if not hasattr(environment, "encoding"):
        raise InvalidValueError(
            f"{cls.__name__} was not made: its __init__ must call super().__init__(**arguments)"
        )
    spec = gymnasium.registry.get(f"{_GYMNASIUM_NAMESPACE}/{name.removeprefix('archgym/')}")
    if spec is not None:
        environment.spec = dataclasses.replace(spec, kwargs={**spec.kwargs, **kwargs})
    return environment


def make_registered(*, name: str, **kwargs: Any) -> Environment:
    """What ``gymnasium.make`` calls; as :func:`make`."""
    return make(name, **kwargs)


def make_vector(
    *, name: str, num_envs: int = 1, max_episode_steps: int | None = None, **kwargs: Any
) -> BatchView:
    """What ``gymnasium.make_vec`` calls: an environment with ``num_envs`` designs a step.

    Raises:
        UnknownNameError, InvalidValueError: as :func:`make` and
            :class:`archgym.views.batch_view.BatchView`.
    """
    from archgym.views.batch_view import BatchView

    return BatchView(make(name, **kwargs), num_envs, max_episode_steps)


def make_agent(name: str, *args: Any, **kwargs: Any) -> Agent:
    """An agent by name; the arguments are those of :class:`archgym.agent.Agent`.

    Raises:
        UnknownNameError: if there is no such agent.
    """
    return agent_class(name)(*args, **kwargs)


def register(name: str, environment: str | type[Environment]) -> None:
    """Adds an environment, as a class or as ``"module:Class"``.

    A class takes the place of an earlier one of the same module and name, as it is where the cell
    of a notebook runs again.

    Raises:
        InvalidValueError: if the name is taken or does not end in a version such as ``-v0``, or
            it is no environment.
    """
    if not (isinstance(name, str) and _ENVIRONMENT_NAME.fullmatch(name)):
        raise InvalidValueError(
            "the name of an environment has letters, digits and the characters . _ -, and ends "
            f"in a version, as in 'Cache-v0', not {name!r:.80}"
        )
    _add("environment", name, environment, Environment)
    _register_one(name)


def register_agent(name: str, agent: str | type[Agent]) -> None:
    """Adds an agent, as a class or as ``"module:Class"``; again as :func:`register` does.

    Raises:
        InvalidValueError: if the name is taken or none, or it is no agent.
    """
    from archgym.agent import Agent

    if not (isinstance(name, str) and name and name.isprintable() and ":" not in name):
        raise InvalidValueError(f"the name of an agent is a text such as 'mine', not {name!r:.80}")
    _add("agent", name, agent, Agent)


def environment_names() -> list[str]:
    """All registered environments, sorted."""
    return sorted(_registered("environment"))


def agent_names() -> list[str]:
    """All registered agents, sorted."""
    return sorted(_registered("agent"))


def is_declaration(name: str) -> bool:
    """Whether a name is the path of a YAML file that declares an environment."""
    return name.lower().endswith((".yaml", ".yml"))


def is_tuning_file(name: str) -> bool:
    """Whether a name is the path of a JSON file in which an autotuner left its results."""
    return name.lower().endswith((".json", ".json.gz"))


def is_environment_file(name: str) -> bool:
    """Whether a name is the path of a file that is an environment, of whichever kind."""
    return is_declaration(name) or is_tuning_file(name)


def environment_class(name: str) -> type[Environment]:
    """The class behind a name, a ``module:Class``, or the path of a YAML or JSON file.

    Raises:
        UnknownNameError: if there is no such environment.
        InvalidValueError: if it is not an :class:`archgym.Environment`, or the file is not
            possible.
    """
    _check_name("environment", name)
    if is_declaration(name):
        from archgym.declared import declared_class

        return declared_class(name)
    if is_tuning_file(name):
        from archgym.tuning import tuning_class

        return tuning_class(name)
    short = name.removeprefix(f"{_GYMNASIUM_NAMESPACE}/")
    allowed = [*environment_names(), "module:Class", "FILE.yaml", "FILE.json"]
    return _class("environment", short, Environment, allowed)


def agent_class(name: str) -> type[Agent]:
    """The class behind a name or a ``module:Class``.

    Raises:
        UnknownNameError: if there is no such agent.
        InvalidValueError: if it is not a complete :class:`archgym.agent.Agent`.
    """
    from archgym.agent import Agent

    loaded: type[Agent] = _class("agent", name, Agent, agent_names())
    if not isinstance(getattr(loaded, "name", None), str):
        raise InvalidValueError(
            f"{name!r} has no name, under which its designs are recorded: give the class one, as "
            f"in name = {loaded.__name__.lower()!r}"
        )
    if missing := sorted(loaded.__abstractmethods__):
        raise InvalidValueError(f"{name!r} does not define {' and '.join(missing)}")
    return loaded


def register_with_gymnasium() -> None:
    """Makes every environment known to ``gymnasium.make`` as ``archgym/NAME``."""
    for name in environment_names():
        _register_one(name)


def _check_environment(simulator: str, file: SimulatorFile, cls: type[Environment]) -> None:
    """Refuses a table or a proxy of another environment."""
    module, colon, attribute = file.environment.partition(":")
    if is_declaration(file.environment):  # the file is not opened, only its name compared
        from archgym.declared import DeclaredEnvironment

        fits = issubclass(cls, DeclaredEnvironment) and cls.source.path.name == file.environment
    elif is_tuning_file(file.environment):
        from archgym.tuning import TuningEnvironment

        fits = issubclass(cls, TuningEnvironment) and cls.file_name == file.environment
    elif colon:  # what a file names is not imported, only compared with what is there
        fits = cls is getattr(sys.modules.get(module), attribute, None)
    else:
        fits = module in environment_names() and cls is environment_class(module)
    if not fits:
        raise InvalidValueError(
            f"simulator {simulator!r} does not fit: the {file.kind} is of environment "
            f"{file.environment}, not of {cls.__module__}:{cls.__qualname__}"
        )


def _register_one(name: str) -> None:
    full = f"{_GYMNASIUM_NAMESPACE}/{name}"
    if full not in gymnasium.registry:
        gymnasium.register(
            full,
            entry_point=f"{__name__}:make_registered",
            vector_entry_point=f"{__name__}:make_vector" if _RESETS_IN_SAME_STEP else None,
            kwargs={"name": name},
        )


@functools.cache
def _registered(kind: str) -> dict[str, Any]:
    """Classes by name, each as itself or as ``module:Class``: installed ones, and our own."""
    installed = {point.name: point.value for point in entry_points(group=f"archgym.{kind}s")}
    return installed | (_ENVIRONMENTS if kind == "environment" else _AGENTS)


def _add(kind: str, name: str, target: Any, base: type[Any]) -> None:
    if isinstance(target, str):
        if not all(target.partition(":")):
            raise InvalidValueError(f"{kind} {name!r} is a class or 'module:Class', not {target!r}")
    else:
        _check_subclass(kind, target, base)
    table = _registered(kind)
    held = table.setdefault(name, target)
    if _place_of_class(held) != _place_of_class(target):
        raise InvalidValueError(f"the name {name!r} is taken by {held!r}")
    if not isinstance(target, str):
        table[name] = target


def _place_of_class(target: Any) -> str:
    """A class, or what stands for it, as ``module:Class``."""
    return target if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"


def _class(kind: str, name: str, base: type[Any], allowed: list[str]) -> type[Any]:
    """The class behind a name or a ``module:Class``, if it is a subclass of the base."""
    _check_name(kind, name)
    target = _registered(kind).get(name, name)
    if target == name and ":" not in name:
        raise UnknownNameError(kind, name, allowed)
    if target == name:  # module:Class: code of the user, who names it
        search_working_folder()
    loaded = _load(target) if isinstance(target, str) else target
    return _check_subclass(kind, loaded, base, target)


def _check_subclass(kind: str, loaded: Any, base: type[Any], target: Any = None) -> type[Any]:
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        hint = "; derive from archgym.agent.Sampler" if kind == "agent" else ""
        shown = loaded if target is None else target
        raise InvalidValueError(f"{shown!r} is not a subclass of archgym's {base.__name__}{hint}")
    return loaded


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str):
        raise InvalidValueError(f"{kind} must be given by its name, a text, not {name!r:.200}")


def _load(target: str) -> Any:
    """The class that ``module:Class`` names."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise InvalidValueError(f"{target!r} is not of the form module:Class")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever a stranger's module does
        missing = isinstance(error, ImportError)
        what = str(error) if missing else f"{type(error).__name__}: {error}"
        place = place_of(error) or (_near(module_name) if missing else "")
        raise ArchgymError(f"cannot load {target!r}: {what}{place}") from error
    if not hasattr(module, attribute):
        own = [
            name
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        raise UnknownNameError(f"class of module {module_name!r}", attribute, own)
    return getattr(module, attribute)


def _near(module_name: str) -> str:
    """The module of the working folder that may have been meant by one that is not there."""
    here = [path.stem for path in Path.cwd().glob("*.py")]
    near = difflib.get_close_matches(module_name, here, n=1)
    return f". Did you mean {near[0]!r}?" if near else ""
