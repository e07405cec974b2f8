"""Plant: products made with instruments that need maintenance, on machines that vibrate."""
