"""Which products are made with instruments that need looking after, on machines that vibrate."""
