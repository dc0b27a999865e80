"""Files that can be trusted: what a stage writes appears complete or not at all, and is listed with its SHA-256.

files      files, written by rename; hashes
blocks     the pieces of a stage's work, each committed on its own; the page at work; what other machines see
failures   unexpected errors in words, and how much a stage may drop
manifests  what a finished stage holds, written last; the newest finished folder of each stage
parquet    Parquet files of fixed row groups, so that equal rows give equal bytes
arrow      Arrow streams, memory-mapped
locks      one run makes a folder, or many read it
tries      sets and maps of texts in one memory-mapped file
"""

from pipeline.storage.arrow import arrow_writer, cells, open_arrow
from pipeline.storage.blocks import block_name, merge_blocks
from pipeline.storage.failures import Failures, log_failures
from pipeline.storage.files import (
    atomic_folder,
    atomic_output,
    digest,
    file_sha256,
    file_size,
    join,
    link_or_copy,
    list_files,
    make_folder,
    read_bytes,
    remove,
    write_bytes,
)
from pipeline.storage.manifests import (
    MANIFEST,
    STAGES,
    FileEntry,
    Manifest,
    Result,
    describe,
    finished_folder,
    finished_stages,
    manifest_sha256,
    read_manifest,
    record_finished,
    write_manifest,
)
from pipeline.storage.parquet import parquet_rows, read_batches, read_rows, read_tuples
