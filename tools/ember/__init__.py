"""ember: a small language model, trained on text from a generator; docs/ember.md has the steps."""
