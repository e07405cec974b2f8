"""Programs of a user who has the wheel alone: ``.ci/newcomer`` runs them outside of the sources."""
