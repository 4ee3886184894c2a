"""Pictures of graphs, as SVG, for Mermaid and for Graphviz, from plain data; and what objects show in a notebook."""
