#!/usr/bin/env python3
"""The manifests of docs/guide/launching.md are what Kubernetes takes. Skips (77) where no Python has the
package kubernetes-validate."""

from __future__ import annotations

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from pythons import run_with  # noqa: E402

run_with("kubernetes_validate")
try:
    import kubernetes_validate
    import yaml
except ImportError as missing:
    print(f"# skipped: {missing}: tools/setup --for frameworks installs kubernetes-validate")
    sys.exit(77)

PAGE = Path(__file__).resolve().parents[2] / "docs/guide/launching.md"


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
    unittest.main(verbosity=2)
