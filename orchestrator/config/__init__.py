"""Composition and checks of configurations: from overrides and files to a `Study`."""
