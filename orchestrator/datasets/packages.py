"""Where installed packages that bring data are; found without importing them."""

import importlib.util
from pathlib import Path


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, None if there is none of that name."""
    try:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
    except ValueError:  # a module made by hand
        return None
    locations = (spec and spec.submodule_search_locations) or []
    return next((Path(location) for location in locations), None)
