"""What everything else stands on: errors, checked arguments, files and progress; it knows no models."""
