"""Layers beside attention."""
