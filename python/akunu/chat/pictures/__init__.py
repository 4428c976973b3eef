"""Images in prompts: opened, scaled and cut as a model takes them, with the text that stands around them."""
