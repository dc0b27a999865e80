"""The stages' algorithms, one file a stage, on the two engines.

extract_pages, build_sequences                    on Beam, block by block
redirects, links, entity_vocab, mention_table     on Spark
beam        blocks on a Beam runner                 supervisor  starts it, and isolates a page that kills a worker
spark       Spark's session, reading, and writing parts that do not depend on the cluster
"""
