"""Models of the Hugging Face Hub: which files are fetched, and its cache."""
