"""Linking over HTTP.

service   requests, answers and limits
batching  requests that are answered together
"""
