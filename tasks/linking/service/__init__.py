"""Linking over HTTP.

service      the application and its process
requests     what requests ask for, their limits, and their links
batching     requests that are computed one after another, or together
places       how many requests may come and wait, and who makes room
connections  those of slow clients, which come to an end
page         the files of the page to type into
schema       the service as OpenAPI describes it
"""
