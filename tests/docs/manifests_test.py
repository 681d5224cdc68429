#!/usr/bin/env python3
"""The manifests of docs/guide/launching.md are what Kubernetes takes. Skips (77) where no Python here has
the package kubernetes-validate."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/guide/launching.md"


def run_with(package: str) -> None:
    """Runs this script again with a Python that has the package, unless this one does."""
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists() and subprocess.run([python, "-c", f"import {package}"], check=False,
                                                    stderr=subprocess.DEVNULL).returncode == 0:
            if python != sys.executable:
                os.execv(python, [python, *sys.argv])
            return
    print(f"# skipped: no Python here has the package {package}")
    sys.exit(77)


run_with("kubernetes_validate")

import kubernetes_validate  # noqa: E402
import yaml  # noqa: E402


def manifests() -> list[dict]:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [each for block in blocks for each in yaml.safe_load_all(block)]


class Manifests(unittest.TestCase):
    def check(self, manifest: dict) -> None:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)

    def test_they_are_valid(self) -> None:
        found = manifests()
        self.assertEqual([each["kind"] for each in found], ["Service", "Job"])
        for each in found:
            self.check(each)

    def test_the_schema_finds_what_is_wrong(self) -> None:
        job = manifests()[1]
        job["spec"]["completionmode"] = job["spec"].pop("completionMode")
        with self.assertRaises(kubernetes_validate.ValidationError):
            self.check(job)


if __name__ == "__main__":
    unittest.main()
