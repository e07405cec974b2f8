"""Side outputs: files for late records and for items that cannot be used."""
