"""From a model's name to a loaded model; `akunu.load` is the entrance."""
