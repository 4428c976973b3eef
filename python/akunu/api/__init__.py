"""Loaded language models, their options, results and streams."""
