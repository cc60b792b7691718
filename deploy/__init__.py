"""Putting Playhead onto machines: topics, local runs, jars."""
