"""From the dump's files to its pages.

download    where a dump is, and fetching it
containers  bz2, gz and plain files, cut into blocks that are read on their own
bzip2       bzip2 blocks found and read in the middle of a file
pages       XML pages of a block; the site information at the dump's start
"""
