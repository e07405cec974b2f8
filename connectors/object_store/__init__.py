"""Object stores: whole objects by name, written under conditions that the store itself checks."""
