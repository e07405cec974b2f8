"""What an engine has to find again after it was killed: snapshots and a journal, bytes without a meaning here."""
