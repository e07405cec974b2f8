"""Streams that queries make of their answers: elements, time and worth, for the queries behind."""
