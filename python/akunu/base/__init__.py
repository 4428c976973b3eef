"""The lowest floor: errors, checked arguments, files and progress. It knows no models."""
