"""The kernel files that `plays_on_gpu` measures, and their targets as conf/target and `kernelgen.targets` have them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
BANDWIDTH = 4.26e12
"""Bytes a second of a copy on an H200."""
PRODUCT_RATE = 677e12
"""bf16 operations a second of an 8192-cubed product on an H200."""


class Region:
    """A target as its conf file and module have it."""

    def __init__(self, name: str) -> None:
        self.name = name
        conf = yaml.safe_load((ROOT / "conf" / "target" / f"{name}.yaml").read_text("utf-8"))
        self.shapes: dict[str, dict[str, int]] = conf["shapes"]["tune"]
        self.module = importlib.import_module(conf["module"])
        limits = conf["tolerance"].items()
        self._tolerance = {name: (float(limit["rtol"]), float(limit["atol"])) for name, limit in limits}

    def wrong(self, entry: Any, dims: dict[str, int], kind: str) -> list[str]:
        """What is wrong with the entry point's answer."""
        inputs = self.module.make_inputs(dims, kind, 1, "cuda")
        expected = self.module.reference(**inputs)
        return list(self.module.compare(inputs, expected, entry(**inputs), self._tolerance))[:2]

    def floor_us(self, dims: dict[str, int]) -> float:
        """The larger of bytes over bandwidth and operations over rate, in microseconds."""
        bytes_moved, flops = self.module.bytes_moved(dims), self.module.flops(dims)
        return float(max(bytes_moved / BANDWIDTH, flops / PRODUCT_RATE) * 1e6)


class Kernel:
    """A kernel file with some module constants set otherwise."""

    def __init__(self, region: Region, path: Path, constants: dict[str, int]) -> None:
        self.region, self.path, self.constants = region, path, constants
        spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        for name, value in constants.items():
            setattr(self.module, name, value)
        self.entry = getattr(self.module, region.name)
        self.table: dict[str, list[Any]] = self.module.AUTOTUNE_CONFIGS
        self.best = {name: configs[0] for name, configs in self.table.items()}

    def use(self, chosen: dict[str, Any]) -> None:
        """Let each kernel have one configuration only."""
        for name, config in chosen.items():
            tuner = getattr(self.module, name)
            tuner.configs = [config]
            tuner.cache.clear()

    def launched(self, inputs: dict[str, Any]) -> list[str]:
        """Kernels that the entry point launches for these inputs."""
        for name in self.table:
            getattr(self.module, name).best_config = None
        self.use(self.best)
        self.entry(**inputs)
        return [name for name in self.table if getattr(self.module, name).best_config is not None]

    def head(self, shape: str) -> dict[str, Any]:
        """What every line says."""
        origin = "play" if self.path.parent.name == self.region.name else "champion"
        floor = round(self.region.floor_us(self.region.shapes[shape]), 2)
        return {"target": self.region.name, "file": self.path.stem, "origin": origin, "constants": self.constants,
                "shape": shape, "floor_us": floor}  # fmt: skip


def kernels_of(region: Region) -> Iterator[tuple[Path, dict[str, int]]]:
    """The naive champion of a target, then its plays with each of their variations."""
    package = ROOT / "kernelgen"
    yield package / "targets" / "champions" / f"{region.name}.py", {}
    for path in sorted((package / "playbook" / "plays" / region.name).glob("*.py")):
        description = yaml.safe_load(path.with_suffix(".yaml").read_text("utf-8"))
        for constants in ({}, *description.get("variations", ())):
            yield path, constants


def options_of(config: Any) -> dict[str, Any]:
    """A configuration as JSON."""
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
