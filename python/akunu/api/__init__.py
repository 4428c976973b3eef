"""Loaded models that write text, and what is asked of them."""
