"""Curation: sources, teacher, verification, filters, decontamination, datasets."""
