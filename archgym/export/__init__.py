"""Datasets as files of other tools: CSV, Parquet, Hugging Face, Minari, Optuna."""
