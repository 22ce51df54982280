"""Layers: one file per family, one small function per PNNX type. Importing the package registers them all."""

from importlib import import_module
from pkgutil import iter_modules

from engine.binding.registry import registry

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

BUILT_IN = registry.copy()
"""The engine's own layers, whatever users register or replace later."""
