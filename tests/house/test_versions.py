"""A stage's bytes change with its VERSION alone, since finished folders are recognised by it.

`python -m tests.house.test_versions` writes the sums of all stages of the corpus. Training rounds otherwise on another
machine, and has none.
"""

import tempfile
import tomllib
from pathlib import Path

import pytest

from pipeline import storage
from tests.support import ROOT

SUMS = ROOT / "tests" / "house" / "golden_sums.toml"
ROUNDED = {"vectors.arrow"}  # otherwise on another processor

pytestmark = pytest.mark.slow


def made(workdir: Path) -> dict[str, storage.Manifest]:
    """The manifests of a work directory by their stages."""
    found = [storage.read_manifest(str(path.parent)) for path in workdir.glob("*/manifest.json")]
    return {manifest.stage: manifest for manifest in sorted(found, key=lambda manifest: manifest.stage)}


def golden(manifest: storage.Manifest) -> dict[str, object]:
    """A stage's VERSION, and a sum of all that its manifest says of what it wrote."""
    files = {file.path: file.sha256 for file in manifest.files if file.path not in ROUNDED}
    sums = [files, dict(manifest.rows), dict(manifest.drops), dict(manifest.facts)]
    return {"version": manifest.version, "sum": storage.digest(sums)}


@pytest.mark.smoke
def test_bytes_change_with_the_version_alone(demo_corpus: Path) -> None:
    wanted, manifests = tomllib.loads(SUMS.read_text()), made(demo_corpus)
    assert set(manifests) == set(wanted)
    changed = {stage for stage, manifest in manifests.items() if golden(manifest) != wanted[stage]}
    # What a stage reads changes its bytes, too.
    own = [stage for stage in sorted(changed) if not changed & set(manifests[stage].inputs)]
    assert not own, "\n".join(
        f"the bytes of {stage} changed: raise its VERSION and write the new sum, or mend it"
        if golden(manifests[stage])["version"] == wanted[stage]["version"]
        else f"{stage} has another VERSION: write the new sum"
        for stage in own
    )


if __name__ == "__main__":
    from tests.support.stages import make_demo

    with tempfile.TemporaryDirectory() as folder:
        sums = {stage: golden(manifest) for stage, manifest in made(make_demo(Path(folder))).items()}
    tables = (f'[{stage}]\nversion = {each["version"]}\nsum = "{each["sum"]}"\n' for stage, each in sums.items())
    SUMS.write_text("# Written by `python -m tests.house.test_versions`.\n\n" + "\n".join(tables))
