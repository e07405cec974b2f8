"""Social media: emerging users, mentioned most, not yet influencers, and growing fastest."""
