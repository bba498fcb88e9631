"""Every reader of untrusted bytes, by name."""

from tests.fuzz import array_readers, dataset_readers, run_readers

MODULES = (array_readers, dataset_readers, run_readers)
READERS = {reader.name: reader for module in MODULES for reader in module.READERS}
