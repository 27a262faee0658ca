"""A learner from another library: Stable-Baselines3's PPO, unchanged, on an environment of archgym.

Run it with ``python examples/learner_from_another_library.py``. It takes about 10 seconds on one
core. Any library that speaks Gymnasium works in the same way.
"""

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO

import archgym  # registers the environments with Gymnasium

STEPS = 2_048
torch.set_num_threads(1)  # more threads only slow down networks as small as these

# The toy environment Conformance-v0 is simulated in microseconds. With `record`, whatever drives
# the environment, every design that it evaluates becomes a row of a dataset.
env = gymnasium.make("archgym/Conformance-v0", objective="minimize energy_pj", record="ppo-data")
print("action space:     ", env.action_space)
print("observation space:", env.observation_space)

# One step evaluates one design and, by default, ends the episode. The reward is larger
# for a better design: 0.5 for the baseline, below 1 for every design, -1 for an illegal one.
model = PPO("MlpPolicy", env, n_steps=256, batch_size=64, gamma=0.0, seed=0, device="cpu")
model.learn(STEPS)

# The trained policy proposes designs by itself.
proposals = []
observation, _ = env.reset(seed=1)
for _ in range(20):
    action, _ = model.predict(observation)
    _, reward, _, _, info = env.step(action)
    proposals.append(reward)
    observation, _ = env.reset()
env.close()
print(f"mean reward of 20 designs of the trained policy: {np.mean(proposals):.3f}")

# Read the rows back: how the mean reward grew, and the best design of all.
data = archgym.data.load("ppo-data")
frame = data.pandas(["step", "reward", "status", "metric.energy_pj"]).sort_values("step")
print(f"{len(frame):,} rows recorded")
rewards = frame["reward"].to_numpy()[:STEPS]
for first in range(0, STEPS, STEPS // 4):
    part = rewards[first : first + STEPS // 4]
    print(f"mean reward of steps {first:>4} to {first + len(part) - 1:>4}: {part.mean():.3f}")
print(f"least energy: {frame['metric.energy_pj'].min():.2f} pJ")
print(f"legal designs: {(frame['status'] == 'ok').mean():.0%}")
