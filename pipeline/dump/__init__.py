"""From the dump's files to its pages.

fetch       the stage FetchDump: a dump found or downloaded, measured and checked
download    a wiki's name, a URL or a path to the dump's files; their download
containers  bz2, gz and plain files, cut into blocks that are read on their own
bzip2       bzip2 blocks found and read in the middle of a file
cutting     page elements cut out of a block's data
pages       XML pages of a block; the site information at the dump's start
fetch_qids  the stage FetchQids: the pages' items at Wikidata
page_props  a property of pages, from the database table of that name
"""
