"""Tests of container images: they need root, docker and minutes (`make images-test`)."""
