"""Linking over HTTP.

service      requests, answers and limits
batching     requests that are computed one after another, or together
places       how many requests may come and wait, and who makes room
connections  those of slow clients, which come to an end
page         the page to type into, whose files page/ has
schema       the service as OpenAPI describes it
"""
