"""What the oracle may import; `test_agreement.py` holds the extraction against it."""

from tests.support import ROOT


def test_the_oracle_shares_no_code_with_the_extraction() -> None:
    folder = ROOT / "tests" / "support"
    sources = (folder / "oracle.py").read_text() + (folder / "oracle_items.py").read_text()
    imported = {
        line.split()[1]
        for line in sources.splitlines()
        if line.startswith(("from pipeline", "import pipeline"))
    }
    allowed = {f"pipeline.mediawiki.{name}" for name in ("characters", "languages", "site", "titles")}
    assert imported == allowed
