"""Independent PPO learners."""

from __future__ import annotations

from typing import ClassVar

from archgym.agents.rl.team import Team, TeamHyperparameters


class IndependentLearners(Team):
    """Independent PPO learners with a shared reward (IPPO), one a parameter or a group.

    The form of "Multi-Agent Reinforcement Learning for Microprocessor Design Space Exploration"
    (Krishnan and others, 2022): each agent chooses its own parameters, the choices together are
    a design, and all get its reward. An episode is one design, so the advantage is the reward
    less the mean of the designs of the batch in which the agent had a part; the choice for an
    inactive parameter plays no part and is not learned from.

    A batch of designs is drawn from the policies and evaluated at once, then the policies are
    improved. Where known designs or such that break a rule come up, others are drawn from flatter
    policies, and the likeliest of them taken: nothing is proposed twice. The agents are those of
    :class:`archgym.views.multi_agent.ParallelView` with the same groups.

    With history, the policies are fitted to the logged designs first, the better ones more
    (advantage-weighted regression), as far as the first designs show that the sources can be
    believed.

    With several goals the reward, and so the search, is that of their weighted geometric mean.
    The same seed gives the same search on the same machine and versions.

    References:
        Krishnan et al., Multi-Agent Reinforcement Learning for Microprocessor Design
            Space Exploration, arXiv 2211.16385, 2022.
        de Witt et al., Is Independent Learning All You Need in the StarCraft Multi-
            Agent Challenge?, arXiv 2011.09533, 2020.
        Schulman et al., Proximal Policy Optimization Algorithms, arXiv 1707.06347,
            2017.

    >>> import archgym
    >>> from archgym.registry import make_agent
    >>> env = archgym.make("Conformance-v0")
    >>> result = make_agent("ippo", env.design_space, seed=1).search(env, budget=100)
    >>> result.simulations, result.duplicates
    (100, 0)
    """

    name: ClassVar[str] = "ippo"
    Hyperparameters = TeamHyperparameters
