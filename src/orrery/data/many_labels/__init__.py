"""Texts with labels from thousands: sparse rows of words, and a tree over the labels."""
