"""The first file of an environment, from a finished run or from answers to questions."""
