"""From a Wikipedia dump to sharded sequences.

Every stage writes a folder with a `manifest.json` that lists its files, rows and drops:

| stage | table | columns |
|---|---|---|
| FetchDump | - | the dump's parts, their sizes and SHA-256, in the manifest; indexes of gzip files |
| ExtractPages | pages | page_id, title, is_disambiguation, paragraph_count |
| | paragraphs | page_id, title, paragraph, section, text, links (start, end, target) |
| | redirects | source, target, fragment |
| | rejected | page_id, title, reason |
| ResolveRedirects | titles | title, canonical, hops, status (page, redirect, loop, missing) |
| BuildEntityVocab | entity_vocab.parquet | entity_id, title, link_count, page_id |
| | entity_vocab.{tsv,jsonl,json} | the same as LUKE's releases and transformers' LukeTokenizer have it |
| | aliases.tries | title or redirect -> entity_id, memory-mapped (`entities.Aliases`) |
| BuildMentionTable | mentions | mention, entity_id, title, link_count, total_links, occurrences, |
| | | link_probability, commonness |
| | candidates.arrow, lookup.tries | the same by name, memory-mapped (`mentions.MentionTable`) |
| | page_names | page, names (mention, title), ambiguous |
| | pages.tries | title or redirect -> row of page_names, memory-mapped (`page_names.PageNames`) |
| TrainTokenizer | tokenizer | vocab.json, merges.txt |
| BuildSequences | sequences, held_out | word_ids, entity_ids, entity_starts, entity_ends, page_id |
| | word_starts.arrow | for each token id whether a word begins there |
| | statistics.json | sizes of sequences and mentions, share of [UNK], drops by reason |
| Pretrain | commonest.arrow | commonest, commonest_known (lists parallel to those of held_out) |
"""
