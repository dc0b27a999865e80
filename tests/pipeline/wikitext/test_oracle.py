"""What the oracle may import; `test_agreement.py` holds the extraction against it."""

from tests.support import ROOT

FILES = ("oracle.py", "oracle_items.py", "oracle_holes.py", "oracle_templates.py")


def test_the_oracle_shares_no_code_with_the_extraction() -> None:
    folder = ROOT / "tests" / "support"
    sources = "".join(path.read_text() for path in folder.glob("oracle*.py") if path.name in FILES)
    imported = {
        line.split()[1]
        for line in sources.splitlines()
        if line.startswith(("from pipeline", "import pipeline"))
    }
    tables = {f"pipeline.mediawiki.{name}" for name in ("characters", "languages", "site", "titles")}
    # What a template's rule says is a table, too; its marks are turned back into wikitext.
    rules = {f"pipeline.wikitext.{name}" for name in ("placeholders", "templates.rules", "templates.table")}
    assert imported == tables | rules
