"""How ember-vision is made: the pictures that it learns from, the model in PyTorch, the files."""
