"""What makes the models, the test data and the texts of kernels: `python -m tools.NAME` in the repository."""
