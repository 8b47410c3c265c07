"""Privacy in graph neural networks: membership of nodes, unlearning of edges, and an audit of both.

The rooms of the library, from the ground up: ``data``, ``models``, ``structure``, ``sampling``, ``bmp``,
``unlearning``, ``attacks``, ``evaluation``, ``study``, ``reporting``. A room imports only rooms that come before it.
"""

__version__ = "0.1.0"
