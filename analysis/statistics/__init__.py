"""Estimates with their uncertainty."""
