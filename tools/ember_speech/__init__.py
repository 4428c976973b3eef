"""ember-speech: a small Whisper, trained on speech that espeak-ng says. docs/ember-speech.md has the steps."""
