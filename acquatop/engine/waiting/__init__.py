"""Words for people about a running query without an answer: the thing waited for, and a remedy."""
