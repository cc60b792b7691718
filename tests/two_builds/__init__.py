"""Two builds at once: slots of a former build and of this one, rolled forward and back under load and kills."""
