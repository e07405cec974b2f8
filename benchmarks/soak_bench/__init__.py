"""Long runs of the soak benchmark: windows, registrations, and a service with its readers."""
