"""LUKE's own method and builder, told anew from its public code."""
