"""A second implementation of the definitions in `docs/view.md`, compared with the fold on generated sessions."""
