"""Sentences of a dump whose names are all links, to learn from where names begin and end."""

from typing import Any

from workflows.base import terminal
from workflows.base.stage import Result, Stage
from workflows.stages.pages import CorpusStage, ExtractPages, FetchDump


class BuildLinkedSentences(CorpusStage):
    """A data set of `ner`: sentences of the dump whose names are all links, with links as entities of one type."""

    FOLDER = "linked_sentences"

    def requires(self) -> dict[str, Stage]:
        return self.cloned(ExtractPages)

    def bytes_parameters(self) -> dict[str, Any]:
        from pipeline.sequences.sentences import DEFAULT, splitter_identity

        return {**self.values("corpus", "held_out"), "sentence_splitter": splitter_identity(DEFAULT)}

    def work(self) -> Result:
        from tasks.linking.corpora import linked_sentences

        extracted = self.clone(ExtractPages)
        manifest = extracted.manifest()
        with terminal.progress_bar(self.title, unit="page") as show:
            return linked_sentences.build(
                manifest.paths(extracted.folder, "paragraphs/"),
                self.folder,
                self.clone(FetchDump).manifest().facts["site"]["language"],
                linked_sentences.Choice(self.corpus.held_out),
                pages=manifest.rows["pages"],
                progress=show,
            )
