"""The server on several machines: replicas of the application, and a front that passes requests to them.

`front` takes requests and keeps those that have not begun to be answered until a replica does; `replica`
answers them with the application of `akunu.server`; `affinity` knows which replica has read what. `deploy`
is the part that Ray Serve is needed for.
"""
