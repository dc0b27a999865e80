"""The tokenizer, and sequences of word and entity ids."""

import luigi

from model.pretraining.recipes import AROUND_A_BASE
from workflows.base import parameters
from workflows.base.parameters import AUTO
from workflows.settings.corpus import HeldOutSettings, PagesSettings, PresetSettings, VocabularySettings


class TrainingSampleSettings(PagesSettings, PresetSettings):
    """TrainTokenizer and its upstream stages."""

    tokenizer_characters = parameters.WholeNumber(
        least=100_000,
        default=100_000_000,
        description="characters that a new tokenizer learns from, at most, in paragraphs by hash; Chinese, Japanese, "
        "Thai and other letters without blanks between words count 25 times",
    )


class TokenizerSettings(TrainingSampleSettings):
    """The tokenizer: a given one, the base model's, or one trained on the corpus."""

    tokenizer = luigi.Parameter(
        default="",
        description="folder of a tokenizer: RoBERTa's (vocab.json, merges.txt) or BERT's (tokenizer.json, vocab.txt); "
        "empty: the base model's, or a new one",
    )


class SequenceSettings(VocabularySettings, TokenizerSettings, HeldOutSettings):
    """BuildSequences and its upstream stages."""

    sentence_splitter = parameters.Text(
        default="sentencex",
        description="sentencex, or module:function of your own: (text, language) to spans in code points",
    )
    max_words = parameters.WholeNumber(
        least=1,
        or_auto=True,
        default=AUTO,
        description="word tokens of a sequence, [CLS] and [SEP] included; auto: 64 for the presets demo and "
        "small, or else 512",
    )
    # Lists and captions are full of sentences below the paper's five word tokens: 4 to 10 % in English dumps.
    max_dropped_sentences = parameters.Share(
        default=0.2, description="share of sentences that may be dropped for their length"
    )

    annotated = luigi.Parameter(
        default="", description="folder of a LinkDocuments, whose texts become sequences, too"
    )
    annotated_place = parameters.OneOf(
        "beside",
        "instead",
        default="beside",
        description="whether the texts of --annotated come beside the dump's",
    )

    @property
    def named_max_words(self) -> int:
        """The words of a sequence; auto by the preset."""
        by_default = 64 if self.named_preset in AROUND_A_BASE else 512
        return by_default if self.max_words == AUTO else int(self.max_words)
