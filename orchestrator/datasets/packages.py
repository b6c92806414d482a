"""Folders of installed packages that contain data, found without importing them."""

import importlib.util
from pathlib import Path


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package; None if it is not installed.

    Parameters
    ----------
    package : str
        Name of the package.
    """
    try:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
    except ValueError:  # a module in `sys.modules` without a specification
        return None
    locations = (spec and spec.submodule_search_locations) or []
    return next((Path(location) for location in locations), None)
