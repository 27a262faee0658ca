"""How the designs of a trial are simulated: executors, time limits, retries and a shared cache."""
