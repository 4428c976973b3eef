"""ember-speech: a small Whisper, trained on what espeak-ng says; docs/ember-speech.md has the steps."""
