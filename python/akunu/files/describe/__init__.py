"""Models as data: architectures, configurations and tensors, read from what files say."""
