"""The pretrained model in each of several languages."""

import json
from pathlib import Path

from pipeline import storage
from workflows.base.stage import Result, Stage
from workflows.stages.pretraining import TorchStage, own_model
from workflows.stages.sequences import BuildSequences, own_sequences
from workflows.stages.tables import BuildMentionTable, ResolveLinks

FIGURES = "languages.json"


class EvaluateLanguages(TorchStage):
    """Figures of the pretrained model on the held-out sequences of each wiki, beside that wiki's commonest pages."""

    FOLDER = "languages"

    def requires(self) -> dict[str, Stage]:
        model = own_model(self)
        wikis = self.of_wikis(BuildSequences, ResolveLinks, BuildMentionTable)
        wikis |= self.cloned(type(own_sequences(self))) | self.tokenizer_requires()
        return {type(model).__name__: model, **wikis}

    def work(self) -> Result:
        from model.hf.load import read_pretrained
        from model.pretraining.evaluation import MOST_SEQUENCES, evaluate, open_held_out

        model, trained = Path(own_model(self).folder), Path(own_sequences(self).folder)
        module = read_pretrained(model).to(self.device())
        found = {}
        for wiki in range(len(self.settings.corpus.wikis)):
            sequences = self.clone(BuildSequences, wiki=wiki)
            language = sequences.manifest().facts["language"]
            commonest = self.write_commonest(f"commonest-{language}.arrow", wiki)
            held_out = open_held_out(Path(sequences.folder), commonest, model, trained)
            found[language] = evaluate(module, held_out, sequences=MOST_SEQUENCES) if len(held_out) else {}
        self.write_texts({FIGURES: json.dumps(found, indent=1) + "\n"})
        facts = {language: figures.get("known_entity_top_1") for language, figures in found.items()}
        return Result(self.described(), facts={"top_1": facts})

    def headline(self, manifest: storage.Manifest) -> str:
        figures = manifest.facts["top_1"].items()
        return ", ".join(f"{language} {'none held out' if top is None else f'{top:.1%}'}" for language, top in figures)
